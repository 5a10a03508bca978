// The only header needed to define a source, which `[[data.sources]] type = "mine"` then selects.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "millrace/base/registry.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

struct DataOptions;

/// The arguments of a source besides its own table.
struct SourceContext {
  std::vector<std::string> classes;   // names; objects of class k are called classes[k]
  const DataOptions& data;            // for built-in sources; its header is not public
  std::vector<SourcePtr<Sample>> of;  // sources that its table lists in `of`
};

/// Opens a source from its table. A std::invalid_argument becomes an error with the table's place.
using SourceFactory =
    std::function<SourcePtr<Sample>(const Config& table, const SourceContext& context)>;
using DetectionSources = Registry<SourceFactory>;
DetectionSources& detection_sources();

/// Registers a source with the options struct `S`; `open(const S&, const SourceContext&)` opens it.
template <class S, class F>
bool register_source(const std::string& name, std::string doc, F open) {
  return detection_sources().add<S>(
      name, std::move(doc), [open](const Config& table, const SourceContext& context) {
        return open(read_options<S>(table, {"type", "name"}), context);
      });
}

}  // namespace millrace
