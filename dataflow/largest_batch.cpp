#include "millrace/dataflow/largest_batch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/group_plan.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "millrace/dataflow/stage_tables.h"
#include "millrace/dataflow/stages/group_by_aspect_ratio.h"

namespace millrace {
namespace {

constexpr std::int64_t kMostImages = std::int64_t{4} << 20;  // maximum that is examined

cv::Size united(cv::Size a, cv::Size b) {
  return {std::max(a.width, b.width), std::max(a.height, b.height)};
}

/// The largest sizes of samples after resizing, each computed once.
class Sizes {
 public:
  Sizes(const Source<Sample>& source, const ResizeShortestEdge& resize)
      : source_(source),
        resize_(resize),
        side_(*std::ranges::max_element(resize.short_side)),
        known_(static_cast<std::size_t>(source.size())) {}

  /// Returns the size; empty if the source does not know it.
  cv::Size operator()(std::int64_t sample) {
    auto& size = known_[static_cast<std::size_t>(sample)];
    if (!size) size = look_up(sample);
    return *size;
  }

 private:
  cv::Size look_up(std::int64_t number) const try {
    const auto sample = source_.about(number);
    if (sample.width < 1 || sample.height < 1) return {};
    return resize_.size_of({sample.width, sample.height}, side_);
  } catch (const DataError&) {  // the flow reports it according to data.on_error
    return {};
  }

  const Source<Sample>& source_;
  const ResizeShortestEdge& resize_;
  const std::int64_t side_;
  std::vector<std::optional<cv::Size>> known_;
};

/// Returns nullopt if annotations alone do not determine the largest batch.
std::optional<LargestBatch> largest_planned(const DataOptions& options,
                                            std::span<const Config> tables, const TrainData& train,
                                            const FlowOptions& how, std::int64_t batches) {
  const auto resize = only_resize(tables);
  if (!resize || !train.source) return std::nullopt;
  Pad pad;
  auto plan = plan_of(train.source);
  for (const auto& table : tables) {
    if (auto found = options_of<Pad>(table)) pad = *std::move(found);
    if (options_of<GroupByAspectRatio>(table))
      plan.stages = build_stages(detection_stages(), std::span(&table, 1),
                                 DetectionContext{train.source, train.classes});
  }
  if (!pad.shapes.empty() || plan.stages.empty()) return std::nullopt;

  Sizes sizes(*train.source, *resize);
  LargestBatch largest{.images = options.batch_size};
  bool knows_all = true;
  const auto most = std::max<std::int64_t>(1, kMostImages / (options.batch_size * how.ranks));
  const Order order(plan.size, plan.repeats, how.seed, how.shuffle);
  SampleKeys keys(plan);
  GroupPlan groups(order, keys, how, plan.batch() * how.ranks);
  for (auto left = std::min(batches, most); left > 0; --left) {
    const auto planned = groups.next();
    if (planned.failure || planned.positions.empty()) break;
    cv::Size group;
    for (const auto position : planned.positions) {
      const auto size = sizes(order.turn(position).sample);
      knows_all = knows_all && !size.empty();
      group = united(group, size);
    }
    if (group.empty()) continue;
    ++largest.planned;
    if (const auto slot = pad.shape_for(group); slot.area() > largest.slot.area())
      largest.slot = slot, largest.number = largest.planned;
  }
  if (!knows_all || largest.planned == 0) return std::nullopt;
  return largest;
}

}  // namespace

std::optional<LargestBatch> largest_train_batch(const DataOptions& options,
                                                std::span<const Config> stages,
                                                const TrainData& train, std::uint64_t seed,
                                                std::int64_t ranks, std::int64_t batches) {
  const auto tables = complete_stages(options, stages);
  const FlowOptions how{.seed = seed,
                        .shuffle = {true, options.shuffle_window},
                        .ranks = ranks,
                        .epochs = 0,
                        .partial = Partial::wrap};
  if (auto planned = largest_planned(options, tables, train, how, batches)) return planned;
  const auto slot = largest_slot(options, stages);
  if (!slot) return std::nullopt;
  return LargestBatch{options.batch_size, *slot};
}

}  // namespace millrace
