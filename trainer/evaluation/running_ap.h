// What AP of boxes an evaluation shows while it runs.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/base/clock.h"
#include "millrace/coco/evaluation/evaluate.h"

namespace millrace {

/// AP of the boxes so far with its 95 % interval, looked at so seldom that it costs about a
/// hundredth of the time. For one thread.
class RunningAp {
 public:
  /// At least `pause_s` seconds lie between two looks.
  explicit RunningAp(double pause_s) : pause_s_(pause_s) {}

  /// Looks, if it is time to. Whether it did.
  bool look(const coco::Evaluator& boxes);

  /// "box AP 0.412 (0.394 .. 0.430)"; empty before the first look.
  const std::string& text() const { return text_; }

 private:
  double pause_s_;
  Clock::time_point ended_ = Clock::now();
  std::string text_;
};

/// The same as lines of the log, one for each tenth of the images at most.
class RunningApLog {
 public:
  /// `images`: how many this rank will see.
  RunningApLog(std::int64_t images, double pause_s) : images_(images), ap_(pause_s) {}

  /// "1200 of 5000 images, box AP 0.412 (0.394 .. 0.430)", where it is time for it.
  void operator()(const coco::Evaluator& boxes);

 private:
  std::int64_t images_, tenths_ = 0;
  RunningAp ap_;
};

}  // namespace millrace
