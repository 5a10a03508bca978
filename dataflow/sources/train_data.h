// The training data: the sources that the configuration declares, or its training split.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/sources/detection_sources.h"

namespace millrace {

/// The keys that every table of [[data.sources]] may have besides its source's own options.
struct SourceKeys {
  std::string type;
  std::string name;
  Options::Strings of;
  void describe(Options& o) {
    o.add("type", type, "registered name of the source");
    o.add("name", name, "name for use by other sources; empty = same as `type`");
    o.add("of", of, "names of the sources that this one combines, if any");
  }
};

/// Completes the tables of `[[data.sources]]` with values that follow [data] and defaults, and
/// checks everything that does not need the data: names and options, references in `of`, and that
/// exactly one source is at the end. Throws ConfigError with file and line.
void settle_sources(const DataOptions& data, std::vector<Config>& tables);

/// The source and the classes of training.
struct TrainData {
  std::vector<std::string> classes;  // names; class k is the k-th
  SourcePtr<Sample> source;          // nullptr if only data servers have the data
};

/// Opens the sources that the `[[data.sources]]` tables declare; without a table, the training
/// split of `data.root`. Each table has a `name` (by default its `type`); `of = ["a", "b"]` lists
/// the sources that it combines. The source that no other combines feeds the flow. The classes are
/// data.classes; if that is empty, those of the training split. If data.source lists data servers
/// and data.root does not exist, no source is opened. Throws ConfigError with file and line for an
/// unknown `type` or name, a duplicate name, a cycle, several or no sources at the end, or a source
/// without samples.
TrainData open_train_data(const DataOptions& data, std::span<const Config> tables);

}  // namespace millrace
