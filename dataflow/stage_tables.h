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

/// The tables with all their options, in the order of spliced_stages over the default list: read,
/// decode, flip, resize_shortest_edge, group_by_aspect_ratio, pad. An option that a table leaves
/// out follows [data] if the stage declares that (Options::Entry::follows), or has its default;
/// `decode` follows data.reduced_decoding before a resize_shortest_edge, with nothing between but
/// flip, cache, print and filter. Tables that are complete already follow `data` anew. Throws
/// ConfigError naming file and line for an unknown stage or option or a bad value.
std::vector<Config> complete_stages(const DataOptions& data, std::span<const Config> tables);

/// Completes the tables and checks what needs no data: that each stage takes what the one before
/// yields, that batches have data.batch_size images, that images fit into the padded shapes, and
/// that a stage follows each key of [data] that is set. Throws ConfigError naming file and line.
/// `data_table` is [data] as it was written.
void settle_stages(const DataOptions& data, const Config& data_table, std::vector<Config>& tables);

/// Throws ConfigError if images of `source` that may share a batch fit into none of its shapes.
/// `tables` are complete; checks only stages that change sizes by resizing and zooming out.
void check_fit(const Source<Sample>& source, std::span<const Config> tables);

/// The one resize that decides the size of images; nullopt if the (complete) tables have none, or
/// stages outside the default list.
std::optional<ResizeShortestEdge> only_resize(std::span<const Config> tables);

/// The options of a complete table, if it is of stage `S`.
template <ConfiguredStage S>
std::optional<S> options_of(const Config& table) {
  if (used_name(table, detection_stages().kind()) != S::kName) return std::nullopt;
  return read_options<S>(table, {"type", "until"});
}

}  // namespace millrace
