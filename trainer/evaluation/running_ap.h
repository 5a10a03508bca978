// The preliminary AP of boxes that an evaluation shows while it runs.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/base/clock.h"
#include "millrace/coco/evaluation/evaluate.h"

namespace millrace {

/// Computes the AP of the boxes so far with its 95 % interval, at intervals that limit the cost to
/// about a hundredth of the time. For one thread.
class RunningAp {
 public:
  /// `pause_s`: minimum seconds between two computations.
  explicit RunningAp(double pause_s) : pause_s_(pause_s) {}

  /// Computes the AP if it is due. Returns true if it did.
  bool update_if_due(const coco::Evaluator& boxes);

  /// Returns "box AP 0.412 (0.394 .. 0.430)"; empty before the first computation.
  const std::string& text() const { return text_; }

 private:
  double pause_s_;
  Clock::time_point ended_ = Clock::now();
  std::string text_;
};

/// Logs the preliminary AP, up to once per tenth of the images.
class RunningApLog {
 public:
  /// `images`: number of images that this rank evaluates.
  RunningApLog(std::int64_t images, double pause_s) : images_(images), ap_(pause_s) {}

  /// Logs "1200 of 5000 images, box AP 0.412 (0.394 .. 0.430)" if it is due.
  void operator()(const coco::Evaluator& boxes);

 private:
  std::int64_t images_, tenths_ = 0;
  RunningAp ap_;
};

}  // namespace millrace
