// The tables of `[[data.stages]]`: the default list, what the tables leave to [data], and what must
// hold between them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/stages/decode.h"
#include "millrace/dataflow/stages/resize_shortest_edge.h"

namespace millrace {

/// The tables with all their options, or those of the default list where there are none: read,
/// decode, flip, resize_shortest_edge, group_by_aspect_ratio, pad. An option that a table leaves
/// out follows [data] where `stage_defaults` says so (see Config::follows), and has its default
/// otherwise; `decode` follows data.reduced_decoding where a resize_shortest_edge comes next, or
/// after a flip. Tables that are complete already follow `data` anew. Throws ConfigError naming
/// file and line for a stage or option that does not exist or cannot be.
std::vector<Config> complete_stages(const DataOptions& data, std::span<const Config> tables);

/// Completes the tables and checks all that does not take the data: that each stage takes what the
/// one before yields, that batches of data.batch_size come out, that images fit into the shapes
/// that batches are padded to, and that no key of [data] is set that no stage follows. Throws
/// ConfigError naming file and line. `data_table` is [data] as it was written.
void settle_stages(const DataOptions& data, const Config& data_table, std::vector<Config>& tables);

/// Throws ConfigError where images of `source` that may come together in a batch fit into none of
/// the shapes that batches are padded to. `tables` are complete. Looks only at stages of the
/// default list: others may change sizes.
void check_fit(const Source<Sample>& source, std::span<const Config> tables);

/// A decoder that, where `reduced`, makes no more pixels than the resize after it leaves.
Decode decode_for(const ResizeShortestEdge& resize, bool reduced);

/// The resize that alone decides how large images become; nothing where the (complete) tables have
/// none, or stages that are not in the default list.
std::optional<ResizeShortestEdge> only_resize(std::span<const Config> tables);

/// The options of a complete table, where it is of stage `S`.
template <ConfiguredStage S>
std::optional<S> options_of(const Config& table) {
  if (used_name(table, detection_stages().kind()) != S::kName) return std::nullopt;
  return read_options<S>(table, {"type"});
}

}  // namespace millrace
