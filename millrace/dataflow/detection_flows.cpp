#include "millrace/dataflow/detection_flows.h"

#include <fmt/format.h>
#include <algorithm>
#include <mutex>

#include <opencv2/core/utility.hpp>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection/batch_padding.h"
#include "millrace/dataflow/detection/check_messages.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/image/image_memory.h"
#include "millrace/dataflow/serving/remote_train_flow.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/stages/decode.h"
#include "millrace/dataflow/stages/fixed_size_crop.h"
#include "millrace/dataflow/stages/flip.h"
#include "millrace/dataflow/stages/group_by_aspect_ratio.h"
#include "millrace/dataflow/stages/large_scale_jitter.h"
#include "millrace/dataflow/stages/mosaic.h"
#include "millrace/dataflow/stages/pad.h"
#include "millrace/dataflow/stages/resize_shortest_edge.h"

namespace millrace {
namespace {

/// OpenCV's own threads would fight with the graph's, which has an image for each core already.
void prepare_opencv() {
  static std::once_flag once;  // a flow may start while another one runs
  std::call_once(once, [] {
    cv::setNumThreads(1);
    pool_images();
  });
}

OnError on_error(const std::string& name) {
  if (name == "fail") return OnError::fail;
  return name == "replace" ? OnError::replace : OnError::skip;
}

FlowOptions flow_options(const DataOptions& data, Share share) {
  FlowOptions options;
  options.rank = share.rank;
  options.ranks = share.ranks;
  options.threads = static_cast<int>(data.threads);
  options.in_flight = data.in_flight;
  options.in_flight_bytes = data.memory << 20;
  options.on_error = on_error(data.on_error);
  options.max_skipped = data.max_skipped;
  return options;
}

/// Decodes no more than a resize will leave.
Decode decode_for(const ResizeShortestEdge& resize, const DataOptions& data) {
  if (!data.reduced_decoding || resize.short_side.empty()) return {};
  return {.short_side = *std::ranges::max_element(resize.short_side), .max_side = resize.max_side};
}

Pad pad_for(const DataOptions& data) {
  auto pad = Pad::from(data);
  try {
    pad.check();
  } catch (const std::invalid_argument& problem) {
    throw ConfigError(fmt::format("data.pad_shapes: {}", problem.what()));
  }
  return pad;
}

/// Throws ConfigError where images that may come together in a batch fit into none of the shapes.
void check_fit(const Source<Sample>& source, const ResizeShortestEdge& resize,
               const GroupByAspectRatio& by_shape, const Pad& pad, std::int64_t batch_size) {
  if (pad.shapes.empty()) return;
  std::vector<cv::Size> largest(by_shape.groups());
  const auto side = *std::ranges::max_element(resize.short_side);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const auto sample = source.about(i);
    if (sample.width < 1) continue;  // known once it is decoded
    const auto size = resize.size_of({sample.width, sample.height}, side);
    auto& group = largest[by_shape(sample)];
    if (batch_size == 1) group = {};
    group = {std::max(group.width, size.width), std::max(group.height, size.height)};
    pad.shape_for(group);
  }
}

/// The largest image that a resize leaves, lying.
cv::Size largest_after(const ResizeShortestEdge& resize) {
  const auto side = std::min(*std::ranges::max_element(resize.short_side), resize.max_side);
  return {static_cast<int>(resize.max_side), static_cast<int>(side)};
}

/// The largest of the given slots, or the one for images of up to `size`.
cv::Size largest_slot_of(const Pad& pad, cv::Size size) {
  if (pad.shapes.empty()) return pad.shape_for(size);
  std::vector<cv::Size> shapes;
  for (const auto& text : pad.shapes) shapes.push_back(parse_shape(text));
  return *std::ranges::max_element(shapes, {}, [](cv::Size shape) { return shape.area(); });
}

Plan default_plan(SourcePtr<Sample> source, const DataOptions& data) {
  const auto resize = ResizeShortestEdge::from(data);
  auto by_shape = GroupByAspectRatio::from(data);
  by_shape.fit(*source);
  check_fit(*source, resize, by_shape, pad_for(data), data.batch_size);
  return from(std::move(source))
      .map(decode_for(resize, data))
      .map(Flip::from(data))
      .map(resize)
      .group_by(by_shape, by_shape.groups(), static_cast<std::size_t>(data.batch_size))
      .map(pad_for(data))
      .plan();
}

Plan train_plan(const TrainData& train, const DataOptions& data, std::span<const Config> stages) {
  if (data.batch_size > train.source->size())
    spdlog::warn("batches of {} (data.batch_size) from {}: images repeat within a batch",
                 counted(data.batch_size, "image"), counted(train.source->size(), "image"));
  if (stages.empty()) return default_plan(train.source, data);
  const DetectionContext context{train.source, data, train.classes};
  auto plan = plan_of(train.source);
  plan.stages = build_stages(detection_stages(), stages, context);
  for (auto& stage : plan.stages) stage = checked(std::move(stage), train.classes.size());
  return plan;
}

FlowOptions train_options(const DataOptions& data, std::uint64_t seed, Share share,
                          const Cursor& start) {
  auto how = flow_options(data, share);
  how.seed = seed;
  how.shuffle = {true, data.shuffle_window};
  how.epochs = 0;
  how.partial = Partial::wrap;
  how.start = start;
  return how;
}

MILLRACE_REGISTER(detection_stages().add<NoOptions>(
    "read", "path, size and objects of an image; always the first stage",
    [](const Config& table, const DetectionContext& context) {
      read_options<NoOptions>(table, {"use"});
      return source_stage(context.source);
    }));

}  // namespace

std::optional<cv::Size> largest_slot(const DataOptions& options, std::span<const Config> stages) {
  if (stages.empty())
    return largest_slot_of(Pad::from(options), largest_after(ResizeShortestEdge::from(options)));
  std::optional<cv::Size> size;
  std::optional<cv::Size> slot;
  for (const auto& table : stages) {
    const auto use = used_name(table, detection_stages().kind());
    const auto sides = [](std::int64_t width, std::int64_t height) {
      return cv::Size(static_cast<int>(width), static_cast<int>(height));
    };
    if (use == ResizeShortestEdge::kName) {
      size = largest_after(configured<ResizeShortestEdge>(table, options));
    } else if (use == FixedSizeCrop::kName) {
      const auto crop = configured<FixedSizeCrop>(table, options);
      size = sides(crop.width, crop.height);
    } else if (use == LargeScaleJitter::kName) {
      const auto crop = configured<LargeScaleJitter>(table, options).target;
      size = sides(crop.width, crop.height);
    } else if (use == Mosaic::kName) {
      const auto mosaic = configured<Mosaic>(table, options);
      size = sides(2 * mosaic.width, 2 * mosaic.height);
    } else if (use == Pad::kName && size) {
      slot = largest_slot_of(configured<Pad>(table, options), *size);
    }
  }
  return slot;
}

std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const TrainData& train, std::uint64_t seed,
                                                  Share share, const Cursor& start) {
  if (!options.source.empty())
    return serving::start_remote_train_flow(options, stages, train, {seed, share, start});
  prepare_opencv();
  return start_flow<Batch>(train_plan(train, options, stages),
                           train_options(options, seed, share, start));
}

std::unique_ptr<NumberedFlow<Batch>> start_numbered_train_flow(const DataOptions& options,
                                                               std::span<const Config> stages,
                                                               const TrainData& train,
                                                               std::uint64_t seed, Share share,
                                                               const Cursor& start, WakeUp wake) {
  prepare_opencv();
  return start_numbered_flow<Batch>(train_plan(train, options, stages),
                                    train_options(options, seed, share, start), std::move(wake));
}

std::unique_ptr<DataFlow<Batch>> start_train_flow(const DataOptions& options,
                                                  std::span<const Config> stages,
                                                  const DataSplit& split, std::uint64_t seed,
                                                  Share share, const Cursor& start) {
  const TrainData train{split.classes, open_source(split, options.filter_empty)};
  return start_train_flow(options, stages, train, seed, share, start);
}

std::unique_ptr<DataFlow<Batch>> start_eval_flow(const DataOptions& options, const DataSplit& split,
                                                 Share share) {
  prepare_opencv();
  const ResizeShortestEdge resize{.short_side = {options.settled_test_short_side()},
                                  .max_side = options.settled_test_max_side(),
                                  .style = options.resize_style};
  auto how = flow_options(options, share);
  if (how.on_error == OnError::replace) how.on_error = OnError::skip;
  return from(std::make_shared<const DetectionSource>(split, /*filter_empty=*/false))
      .map(decode_for(resize, options))
      .map(resize)
      .group(static_cast<std::size_t>(options.test_batch_size))
      .map(Pad{.divisor = options.divisor})
      .start(how);
}

}  // namespace millrace
