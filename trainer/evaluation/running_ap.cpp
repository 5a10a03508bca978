#include "millrace/trainer/evaluation/running_ap.h"

#include <algorithm>

#include "millrace/base/log.h"
#include "millrace/coco/analysis/bootstrap.h"

namespace millrace {

bool RunningAp::update_if_due(const coco::Evaluator& boxes) {
  constexpr std::size_t kDraws = 100;
  constexpr double kMaxShare = 0.01;  // maximum share of the time
  if (seconds_since(ended_) < pause_s_) return false;
  const auto began = Clock::now();
  text_ = "box AP " + coco::ap_text(coco::ap_so_far(boxes, kDraws));
  ended_ = Clock::now();
  pause_s_ = std::max(pause_s_, seconds_since(began) / kMaxShare);
  return true;
}

void RunningApLog::operator()(const coco::Evaluator& boxes) {
  constexpr std::int64_t kLines = 10;
  const auto seen = static_cast<std::int64_t>(boxes.images());
  const auto tenths = images_ > 0 ? seen * kLines / images_ : 0;
  if (tenths <= tenths_ || seen >= images_ || !ap_.update_if_due(boxes)) return;
  tenths_ = tenths;
  log_info("{} of {} images, {}", seen, images_, ap_.text());
}

}  // namespace millrace
