// The one header for a source of your own, which `[[data.sources]] type = "mine"` then names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "millrace/base/registry.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

struct DataOptions;

/// What a source may know besides its own table.
struct SourceContext {
  std::vector<std::string> classes;   // names; objects of class k are called classes[k]
  const DataOptions& data;            // for built-in sources: its header is not public
  std::vector<SourcePtr<Sample>> of;  // the sources that its table names in `of`
};

/// A std::invalid_argument of a factory becomes an error with the table's place.
using SourceFactory =
    std::function<SourcePtr<Sample>(const Config& table, const SourceContext& context)>;
using DetectionSources = Registry<SourceFactory>;
DetectionSources& detection_sources();

/// Registers a source whose options are the struct `S`; `open(const S&, const SourceContext&)`
/// opens it.
template <class S, class F>
bool register_source(const std::string& name, std::string doc, F open) {
  return detection_sources().add<S>(
      name, std::move(doc), [open](const Config& table, const SourceContext& context) {
        return open(read_options<S>(table, {"type", "name"}), context);
      });
}

}  // namespace millrace
