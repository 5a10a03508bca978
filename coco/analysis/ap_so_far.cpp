#include "millrace/coco/analysis/ap_so_far.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

namespace millrace::coco {

Interval ap_so_far(const Evaluator& evaluator, std::size_t draws) {
  std::vector<std::uint32_t> images;
  const Matches matches = evaluator.matches(images);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (images.empty()) return {-1, kNone, kNone};
  const Matches* alone[] = {&matches};
  const WeightedAp result(evaluator.plan(), alone);
  const Resamples drawn = resample(result, evaluator.plan().truth.images.size(), draws, images);
  Interval ap = spread(drawn).ap;
  ap.value = mean(drawn.whole).ap;
  return ap;
}

std::string ap_text(const Interval& ap) {
  if (ap.value < 0) return "-";
  return fmt::format("{:.3f} ({:.3f} .. {:.3f})", ap.value, ap.low, ap.high);
}

}  // namespace millrace::coco
