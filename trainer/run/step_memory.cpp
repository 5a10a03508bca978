#include "millrace/trainer/run/step_memory.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/engine/source.h"
#include "millrace/models/detector/precision.h"
#include "millrace/trainer/failed_steps.h"

namespace millrace {
namespace {

/// How far a forecast may be off, either way.
constexpr double kError = 0.15;

/// What libtorch and its libraries take for themselves once they compute.
constexpr double kLibraries = 48 << 20;

/// Of a pixel: bytes in the batch, and normalised.
constexpr double kPixel = 3, kNormalised = 3 * sizeof(float);

/// Of so many images, beside their pixels, as they are computed in `precision`.
double bytes_of_pass(const Detector& detector, std::int64_t images, double pixels,
                     FloatType precision) {
  const ComputeIn type(precision_type(precision), at::kCPU);
  return detector.activation_bytes(images, pixels);
}

double bytes_of_gradients(const Detector& detector) {
  double all = 0;
  for (const auto& parameter : detector.parameters())
    if (parameter.trainable()) all += static_cast<double>(parameter.value.nbytes());
  return all;
}

/// The optimizer's state, and the copies of it and of the model that a checkpoint is written from.
double bytes_of_state(const Detector& detector, const Recipe& recipe) {
  const double kept = recipe.optimizer.type == OptimizerType::adamw ? 2 : 1;  // per trained number
  double all = 2 * kept * bytes_of_gradients(detector);
  for (const auto& parameter : detector.parameters())
    all += static_cast<double>(parameter.value.nbytes());
  return all;
}

std::string size_text(const LargestBatch& batch) {
  return fmt::format("{} of {} x {} pixels", counted(batch.images, "image"), batch.slot.width,
                     batch.slot.height);
}

std::string text_of(const MemoryForecast& forecast) {
  const auto& [batch, test_batch, passes, present, state, step, evaluation, flow] = forecast;
  auto text =
      fmt::format("memory by estimate: a step takes {} for {}", byte_text(step), size_text(batch));
  if (passes > 1) text += fmt::format(" in {} passes", passes);
  text += batch.planned > 0 ? fmt::format(", the largest of {} planned batches", batch.planned)
                            : " at most";
  if (evaluation > 0)
    text += fmt::format("; evaluation {} for {}", byte_text(evaluation), size_text(test_batch));
  return text + fmt::format(
                    "; the data flow {}; the optimizer and checkpoints {}; at most {} "
                    "together",
                    byte_text(flow), byte_text(state), byte_text(forecast.more()));
}

}  // namespace

nlohmann::ordered_json to_json(const MemoryForecast& forecast) {
  const auto mib = [](double bytes) { return std::llround(bytes / (1 << 20)); };
  return {{"present", mib(forecast.present)}, {"state", mib(forecast.state)},
          {"step", mib(forecast.step)},       {"evaluation", mib(forecast.evaluation)},
          {"flow", mib(forecast.flow)},       {"most", mib(forecast.present + forecast.more())}};
}

namespace {

/// Sets what a step takes in so many passes.
void set_passes(MemoryForecast& forecast, const PlannedTraining& training, std::int64_t passes) {
  const auto& [recipe, detector, data, validation, cluster] = training;
  const auto unit = std::max<std::int64_t>(1, recipe.train.micro_batch);
  const auto images = unit * ((forecast.batch.images / unit + passes - 1) / passes);  // of a pass
  const auto pixels = static_cast<double>(images) * forecast.batch.slot.area();
  const auto activations = bytes_of_pass(detector, images, pixels, recipe.train.precision);
  const auto gradients = bytes_of_gradients(detector);
  // In a step's only pass activations go while gradients come.
  const bool is_only = passes == 1 && recipe.optimizer.accumulate == 1;
  forecast.passes = passes;
  forecast.step =
      (is_only ? std::max(activations, gradients) : activations + gradients) +
      kNormalised * pixels +
      kPixel * forecast.batch.pixels() * static_cast<double>(recipe.optimizer.accumulate);
}

/// Batches of the whole run.
std::int64_t count_batches(const PlannedTraining& training) {
  const auto& [recipe, detector, data, validation, cluster] = training;
  const auto images = static_cast<double>(recipe.data.batch_size * cluster.size());
  const auto whole = data.source ? recipe.train.epochs * turns(*data.source) / images : 0;
  const auto most = static_cast<double>(recipe.train.max_steps * recipe.optimizer.accumulate);
  return static_cast<std::int64_t>(std::ceil(most > 0 ? std::min(whole, most) : whole));
}

}  // namespace

std::optional<MemoryForecast> forecast_memory(const PlannedTraining& training,
                                              std::int64_t passes) {
  const auto& [recipe, detector, data, validation, cluster] = training;
  if (recipe.train.device != "cpu" || detector.activation_bytes(1, 1) == 0) return std::nullopt;
  const auto largest = largest_train_batch(recipe.data, recipe.stages, data,
                                           static_cast<std::uint64_t>(recipe.train.seed),
                                           cluster.size(), count_batches(training));
  if (!largest) return std::nullopt;
  MemoryForecast forecast{.batch = *largest, .present = static_cast<double>(rss_bytes())};
  set_passes(forecast, training, passes);
  const bool shares_gradients = cluster.size() > 1 || recipe.train.micro_batch > 0;
  forecast.state = kLibraries + bytes_of_state(detector, recipe) +
                   (shares_gradients ? bytes_of_gradients(detector) : 0);
  forecast.flow = flow_bytes(recipe.data, recipe.data.batch_size, largest->slot);
  if (!validation) return forecast;
  forecast.test_batch = largest_test_batch(recipe.data, validation->split);
  const auto& test = forecast.test_batch;
  const at::NoGradGuard no_graph;
  forecast.evaluation =
      bytes_of_pass(detector, test.images, test.pixels(), recipe.train.eval_precision) +
      (kNormalised + kPixel) * test.pixels() +
      flow_bytes(recipe.data, recipe.data.test_batch_size, test.slot);
  return forecast;
}

MemoryFit fit_into_memory(const PlannedTraining& training, std::int64_t least_passes) {
  const auto& [recipe, detector, data, validation, cluster] = training;
  const bool chooses = recipe.train.passes == 0;
  const auto most_passes =  // a pass has a micro-batch at least
      std::max<std::int64_t>(
          1, recipe.data.batch_size / std::max<std::int64_t>(1, recipe.train.micro_batch));
  MemoryFit fit{.passes = chooses ? std::min(least_passes, most_passes) : recipe.train.passes};
  fit.forecast = forecast_memory(training, fit.passes);
  const auto free = free_memory();
  if (!fit.forecast || !free) return fit;
  const auto here = static_cast<double>(cluster.local_size());
  if (chooses) {
    while ((1 + kError) * here * fit.forecast->more() > *free && fit.passes < most_passes)
      set_passes(*fit.forecast, training, ++fit.passes);
    const std::vector wanted{static_cast<double>(fit.passes)};
    fit.passes = static_cast<std::int64_t>(std::ranges::max(cluster.numbers("passes", wanted)));
    set_passes(*fit.forecast, training, fit.passes);
  }
  const auto& forecast = *fit.forecast;
  const auto text = fmt::format(
      "{}, with {}{} free", text_of(forecast),
      cluster.local_size() > 1 ? fmt::format("{} processes here and ", cluster.local_size()) : "",
      byte_text(*free));
  const auto instead =
      (!chooses && fit.passes < most_passes ? "set train.passes = 0, or " : std::string()) +
      kLessMemory;
  if ((1 - kError) * here * (forecast.state + forecast.step + forecast.flow) > *free)
    throw ConfigError(fmt::format("{}: it cannot fit: {}", text, instead));
  if (here * forecast.more() > *free)
    spdlog::warn("{}: it may not fit. If it does not: {}", text, instead);
  else
    spdlog::info(text);
  return fit;
}

}  // namespace millrace
