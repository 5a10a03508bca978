// The only header needed to define a stage, which `[[data.stages]] type = "invert"` then selects:
//
//   /// Inverts an image's colours by chance.
//   struct Invert {
//     static constexpr std::string_view kName = "invert";
//     static constexpr std::string_view kAfter = "decode";  // needs pixels
//     double probability = 0.5;
//
//     Sample operator()(Sample sample, Rng& rng) const {
//       auto& image = pixels(sample, kName);  // (H, W, 3) RGB bytes
//       if (rng.chance(probability)) cv::bitwise_not(image, image);
//       return sample;
//     }
//
//     void describe(Options& o) {
//       o.add("probability", probability, "chance to invert an image", {.min = 0, .max = 1});
//     }
//   };
//   MILLRACE_REGISTER(register_stage<Invert>("inverts an image's colours by chance"));
//
// A stage is a function object. One copy is called from many threads at once, so operator() is
// const and draws random numbers only from the Rng; the same seed then gives the same bytes for any
// number of threads. Its members:
//
//   kName        the value of `type`
//   describe(o)  the options; an option that a table omits has the member's initial value
//   operator()   the work, in one of the four forms below; throws DataError for a sample that
//                cannot be used
//   kAfter       optional: the stage whose result it needs; a list of stages in another order is
//                rejected before anything runs
//   kPartnersAfter  optional, for a stage that mixes samples: the stage after which the other
//                samples are taken, e.g. "decode"; without it all stages before make them
//   check()      optional: throws std::invalid_argument if options contradict each other. Called
//                when a table is read; the message gets the table's file and line
//   largest_output(input)  optional: the largest image, width and height, that it makes of images
//                of up to `input`; both are std::optional<cv::Size>, nullopt = unknown. Without it
//                no result is larger than the input
//   draws()      optional: false if the Rng is not used with these options. Stages before a `cache`
//                must not draw
//
// A stage keeps samples valid: 8-bit RGB, members of `objects` of one length, boxes and masks
// inside the image. `resize`, `crop` and `warp` (transforms.h) change pixels and objects together.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <opencv2/core/types.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/base/registry.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "millrace/dataflow/engine/source.h"

namespace millrace {

/// The requirements of all stages: a name and options, each with a default.
template <class S>
concept ConfiguredStage = std::default_initializable<S> && std::copy_constructible<S> &&
    requires(S stage, Options& o) {
  { S::kName } -> std::convertible_to<std::string_view>;
  stage.describe(o);
};

/// Converts one In to the result of operator(). In is Sample, std::vector<Sample> (a group) or
/// Batch.
template <class S, class In>
concept MapStage = ConfiguredStage<S> &&
    (std::invocable<const S&, In, Rng&> || std::invocable<const S&, In>);

/// Passes on the samples for which operator() returns true.
template <class S>
concept FilterStage = ConfiguredStage<S> && requires(const S& stage, const Sample& sample) {
  { stage(sample) } -> std::same_as<bool>;
};

/// Makes one sample of each sample and `partners` further ones, drawn at random from the whole
/// source.
template <class S>
concept MixStage = ConfiguredStage<S> &&
    requires(const S& stage, Sample sample, std::vector<Sample> others, Rng& rng) {
  { stage.partners(std::as_const(sample), rng) } -> std::convertible_to<std::size_t>;
  { stage(std::move(sample), std::move(others), rng) } -> std::same_as<Sample>;
};

template <class S>
concept DetectionStage = FilterStage<S> || MixStage<S> || MapStage<S, Sample> ||
    MapStage<S, std::vector<Sample>> || MapStage<S, Batch>;

/// The arguments of a factory besides its own table; most stages do not need them.
struct DetectionContext {
  SourcePtr<Sample> source;
  std::vector<std::string> classes;       // names; class k is the k-th
  std::span<const Config> in_front = {};  // complete tables of the stages before it
  // The configuration is only checked and no flow starts: create no file; `source` is empty.
  bool only_checked = false;
};

/// Makes a stage from its complete table, and bounds the size of its images.
struct DetectionStageFactory {
  StageFactory<DetectionContext> create;
  /// See `largest_output` above; empty = no result is larger than the input.
  std::function<std::optional<cv::Size>(const Config& table, std::optional<cv::Size> input)>
      largest_output = {};

  Stage operator()(const Config& table, const DetectionContext& context) const {
    return create(table, context);
  }
};

/// All stages by name. A stage that needs its context registers a factory here:
/// `detection_stages().add<MyOptions>("mine", "one line of doc", {create})`, where `create(const
/// Config& table, const DetectionContext&)` returns a Stage and reads the table by
/// `read_options<MyOptions>(table, {"type"})`.
using DetectionStages = Registry<DetectionStageFactory>;
DetectionStages& detection_stages();

/// Converts a function object of any form to a Stage.
template <DetectionStage S>
Stage detection_stage(S stage) {
  std::string name(S::kName);
  if constexpr (FilterStage<S>) {
    return filter_stage<Sample>(std::move(name), std::move(stage));
  } else if constexpr (MixStage<S>) {
    const auto partners = [stage](const Sample& sample, Rng& rng) {
      return stage.partners(sample, rng);
    };
    auto mixing = mix_stage<Sample>(std::move(name), partners, std::move(stage));
    if constexpr (requires { S::kPartnersAfter; })
      std::get<Mix>(mixing.work).made_by = S::kPartnersAfter;
    return mixing;
  } else if constexpr (MapStage<S, Sample>) {
    return map_stage<Sample>(std::move(name), std::move(stage));
  } else if constexpr (MapStage<S, Batch>) {
    return map_stage<Batch>(std::move(name), std::move(stage));
  } else {
    return map_stage<std::vector<Sample>>(std::move(name), std::move(stage));
  }
}

/// Registers a stage under its `kName`.
template <DetectionStage S>
bool register_stage(std::string doc) {
  DetectionStageFactory factory{[](const Config& table, const DetectionContext&) {
    auto stage = detection_stage(read_options<S>(table, {"type"}));
    if constexpr (requires { S::kAfter; }) stage.after = S::kAfter;
    return stage;
  }};
  if constexpr (requires(const S& stage) { stage.largest_output(std::optional<cv::Size>()); })
    factory.largest_output = [](const Config& table, std::optional<cv::Size> input) {
      return read_options<S>(table, {"type"}).largest_output(input);
    };
  return detection_stages().add<S>(std::string(S::kName), std::move(doc), std::move(factory));
}

}  // namespace millrace
