#include "cli/trained_detector.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "trainer/run.h"
#include "trainer/weights.h"

namespace millrace::cli {

std::unique_ptr<Detector> trained_detector(const Recipe& recipe,
                                           const std::vector<std::string>& classes,
                                           const std::string& weights) {
  auto detector = build_detector(recipe, classes);
  const auto report = load_weights(detector->parameters(), weights);
  log_report(report, detector->parameters().size(), weights);
  if (const auto bad = report.not_loaded(); !bad.empty())
    throw Error(
        fmt::format("{} does not fit this model: {} of {} tensors are missing, of other classes or "
                    "of another shape, such as {}; was it trained with another configuration?",
                    weights, bad.size(), detector->parameters().size(), bad.front()));
  detector->parameters_changed();
  return detector;
}

}  // namespace millrace::cli
