#include "trainer/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "base/errors.h"
#include "base/free_memory.h"
#include "base/log.h"
#include "base/text.h"
#include "dataflow/detection.h"

namespace millrace {
namespace {

/// The least share of its estimate that a step was seen to take, rounded down.
constexpr double kCertain = 0.5;

constexpr auto kRemedy =
    "lower data.batch_size (optimizer.accumulate = N makes a step of N batches), or "
    "data.short_side "
    "and data.max_side";

}  // namespace

StepMemory step_memory(const Detector& detector, const Recipe& recipe, cv::Size size) {
  double values = 0, trained = 0;
  for (const auto& parameter : detector.parameters()) {
    values += static_cast<double>(parameter.value.nbytes());
    if (parameter.trainable()) trained += static_cast<double>(parameter.value.nbytes());
  }
  const double kept = recipe.optimizer.kind == "adamw" ? 2 : 1;  // numbers for each that is trained
  const auto pixels = static_cast<double>(recipe.data.batch_size) *
                      static_cast<double>(size.width) * static_cast<double>(size.height);
  return {.weights = values + (1 + kept) * trained,
          .batch = pixels * 3 * (1 + sizeof(float)),
          .activations = detector.activation_bytes(recipe.data.batch_size, pixels)};
}

void check_step_memory(const Detector& detector, const Recipe& recipe, const Cluster& cluster) {
  const auto size = largest_slot(recipe.data, recipe.stages);
  const auto free = free_memory();
  if (!size || !free || recipe.train.device != "cpu") return;
  const auto memory = step_memory(detector, recipe, *size);
  const auto all = memory.total() * static_cast<double>(cluster.local_size());
  const auto what = fmt::format(
      "a step takes about {} by estimate: {} for weights, gradients and the optimizer, {} for a "
      "batch "
      "of {} of up to {} x {} pixels and its activations",
      byte_text(memory.total()), byte_text(memory.weights),
      byte_text(memory.batch + memory.activations), counted(recipe.data.batch_size, "image"),
      size->width, size->height);
  const auto has = fmt::format(
      "{}{} free",
      cluster.local_size() > 1 ? counted(cluster.local_size(), "process") + " here, " : "",
      byte_text(*free));
  if (kCertain * all > *free)
    throw ConfigError(fmt::format("{}; with {} it cannot fit: {}", what, has, kRemedy));
  if (all > *free)
    spdlog::warn("{}; with {} it may not fit. If it does not: {}", what, has, kRemedy);
  else
    spdlog::info("{}; {}", what, has);
}

bool is_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem)) return true;
  const std::string_view what = problem.what();
  return what.find("DefaultCPUAllocator: ") != what.npos ||
         what.find("out of memory") != what.npos || what.find("std::bad_alloc") != what.npos;
}

std::string out_of_memory_text(const std::vector<Batch>& batches) {
  std::string text;
  for (const auto& batch : batches) {
    text += text.empty() ? "not enough memory for " : " and ";
    text += fmt::format("a batch of {} padded to {} x {} pixels (",
                        counted(std::ssize(batch.images), "image"), batch.width, batch.height);
    constexpr std::size_t kNamed = 8;
    for (std::size_t i = 0; i < std::min(kNamed, batch.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "image " : ", ", batch.images[i].image_id);
    text += batch.size() > kNamed ? ", ...)" : ")";
  }
  return fmt::format("{}: {}", text, kRemedy);
}

}  // namespace millrace
