#include "cli/trained_detector.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"
#include "trainer/weights.h"

namespace millrace::cli {

std::unique_ptr<Detector> trained_detector(const Recipe& recipe,
                                           const std::vector<std::string>& classes,
                                           const std::string& weights) {
  const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
  auto detector = detectors().at(recipe.model_name).create(recipe.model, {classes, seed});
  const auto report = load_weights(detector->parameters(), weights);
  auto bad = report.mismatched;
  bad.insert(bad.end(), report.missing.begin(), report.missing.end());
  if (!bad.empty())
    throw Error(
        fmt::format("{} does not fit this model: {} of {} tensors are missing or have another "
                    "shape, such as {}; "
                    "was it trained with another configuration?",
                    weights, bad.size(), detector->parameters().size(), bad.front()));
  if (!report.unused.empty())
    spdlog::warn("{}: {} of it unused, such as {}", weights,
                 counted(std::ssize(report.unused), "tensor"), report.unused.front());
  detector->parameters_changed();
  return detector;
}

}  // namespace millrace::cli
