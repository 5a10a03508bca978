// What training reads: the sources that the configuration declares, or its training split.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/sources/detection_sources.h"

namespace millrace {

/// The keys of any table of [[data.sources]] besides its source's own options.
struct SourceKeys {
  std::string type;
  std::string name;
  Options::Strings of;
  void describe(Options& o) {
    o.add("type", type, "the source");
    o.add("name", name, "what other sources call it; empty: as `type`");
    o.add("of", of, "the sources that it is made of, where it is made of others");
  }
};

/// Completes the tables of `[[data.sources]]` with what follows [data] and with their defaults, and
/// checks all that does not take the data: names and options, what is made of what, that one source
/// is at the end. Throws ConfigError naming file and line.
void settle_sources(const DataOptions& data, std::vector<Config>& tables);

/// What training reads.
struct TrainData {
  std::vector<std::string> classes;  // names; class k is the k-th
  SourcePtr<Sample> source;          // nullptr if only data servers have the data
};

/// Opens the sources that the `[[data.sources]]` tables declare; without a table, the training
/// split of `data.root`. Each table has a `name` (by default its `type`); `of = ["a", "b"]` names
/// those that a table is made of. The one that no other is made of feeds the flow. The classes are
/// data.classes; if that is empty, those of the training split. If data.source names data servers
/// and there is no data.root here, no source is opened. Throws ConfigError naming
/// file and line: an unknown `type` or name, one name twice, a cycle, several or no sources at the
/// end, a source without samples.
TrainData open_train_data(const DataOptions& data, std::span<const Config> tables);

}  // namespace millrace
