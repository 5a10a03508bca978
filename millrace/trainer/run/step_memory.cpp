#include "millrace/trainer/run/step_memory.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/trainer/failed_steps.h"

namespace millrace {
namespace {

/// The least share of its estimate that a step has taken, rounded down.
constexpr double kCertain = 0.5;

}  // namespace

void check_step_memory(const Detector& detector, const Recipe& recipe, const Cluster& cluster) {
  const auto size = largest_slot(recipe.data, recipe.stages);
  const auto free = free_memory();
  if (!size || !free || recipe.train.device != "cpu") return;
  const double kept = recipe.optimizer.type == "adamw" ? 2 : 1;  // per trained number
  double weights = 0;  // values, gradients, optimizer state
  for (const auto& parameter : detector.parameters())
    weights +=
        (parameter.trainable() ? 2 + kept : 1) * static_cast<double>(parameter.value.nbytes());
  const auto images = recipe.data.batch_size;
  const auto pixels = static_cast<double>(images) * static_cast<double>(size->width) *
                      static_cast<double>(size->height);
  const auto batch = pixels * 3 * (1 + sizeof(float)) + detector.activation_bytes(images, pixels);
  const auto step = weights + batch, all = step * static_cast<double>(cluster.local_size());
  const auto what = fmt::format(
      "a step takes about {} by estimate: {} for weights, gradients and the optimizer, {} for a "
      "batch of {} of up to {} x {} pixels and its activations",
      byte_text(step), byte_text(weights), byte_text(batch), counted(images, "image"), size->width,
      size->height);
  const auto has = fmt::format(
      "{}{} free",
      cluster.local_size() > 1 ? fmt::format("{} processes here, ", cluster.local_size()) : "",
      byte_text(*free));
  if (kCertain * all > *free)
    throw ConfigError(fmt::format("{}; with {} it cannot fit: {}", what, has, kLessMemory));
  if (all > *free)
    spdlog::warn("{}; with {} it may not fit. If it does not: {}", what, has, kLessMemory);
  else
    spdlog::info("{}; {}", what, has);
}

}  // namespace millrace
