// The tables of `[[data.stages]]`: the default list, defaults from [data], and checks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"

namespace millrace {

/// Returns the tables with all options, in execution order: those without `after` and `before`, or
/// without any such table the default list (read, decode, flip, resize_shortest_edge,
/// group_by_aspect_ratio, pad), and the others directly behind the stage whose type `after` names,
/// or in front of the one that `before` names. An omitted option follows [data]
/// if the stage declares that (Options::Entry::follows), else it has its default. `decode` follows
/// data.reduced_decoding if a resize_shortest_edge comes after it with only flip, cache, print and
/// filter between. Options of complete tables that follow [data] are set again from `data`. Throws
/// ConfigError with file and line for an unknown stage or option or an invalid value.
std::vector<Config> complete_stages(const DataOptions& data, std::span<const Config> tables);

/// Completes the tables and makes the checks that need no data: each stage takes what the one
/// before yields, batches have data.batch_size images, images fit into the padded shapes, and each
/// key of [data] that is set has a stage that follows it. Throws ConfigError with file and line.
/// `data_table` is [data] as written by the user.
void settle_stages(const DataOptions& data, const Config& data_table, std::vector<Config>& tables);

/// Throws ConfigError if images of `source` that may share a batch fit into none of its shapes.
/// `tables` are complete. Checks only stages that change sizes by resizing and zooming out.
void check_fit(const Source<Sample>& source, std::span<const Config> tables);

/// Returns the resize that alone determines the size of images; nullopt if the complete tables have
/// no resize, or stages outside the default list.
std::optional<ResizeShortestEdge> only_resize(std::span<const Config> tables);

/// Returns the options of a complete table; nullopt if it is not of stage `S`.
template <ConfiguredStage S>
std::optional<S> options_of(const Config& table) {
  if (component_type(table, detection_stages().kind()) != S::kName) return std::nullopt;
  return read_options<S>(table, {"type", "until"});
}

}  // namespace millrace
