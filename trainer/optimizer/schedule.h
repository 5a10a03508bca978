// The learning rate over time, in epochs so that it holds for any batch and data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

/// How the rate falls; see Schedule.
enum class ScheduleType { step, cosine, warmup_cosine, poly, exponential, constant };
inline std::vector<std::string> value_names(ScheduleType) {
  return {"step", "cosine", "warmup_cosine", "poly", "exponential", "constant"};
}

struct ScheduleOptions {
  ScheduleType type = ScheduleType::step;
  std::vector<double> milestones = {8, 11};  // epochs, of "step"
  double gamma = 0.1;                        // at each milestone; of "exponential", each epoch
  double power = 0.9;                        // of "poly"
  double end_factor = 0;                     // of "warmup_cosine": share of the rate at its end
  double end_epochs = 0;                     // of "warmup_cosine": the last ones, which stay there
  std::string warmup = "1000 steps";         // or epochs, or images
  double warmup_factor = 0.001;              // of the rate at step 0
  double warmup_power = 1;                   // 1: linear, 2: quadratic

  void describe(Options& o);

  /// Throws ConfigError where a run of `epochs` makes no sense of it: milestones that do not rise
  /// or lie beyond the end, a warm-up that reaches a milestone or the end, values that the type
  /// does not use.
  void check(const Config& table, double epochs) const;

  /// Checks a warm-up in steps or images, which takes the size of the data set, in images, and of a
  /// step. Throws ConfigError.
  void check_warmup(double epochs, std::int64_t epoch_images, std::int64_t images_per_step) const;

 private:
  /// Why a run of `epochs` cannot warm up for `length` epochs; empty: it can.
  std::string objection(double length, double epochs) const;
};

/// How far a training has come.
struct ScheduleTime {
  double progress = 0;  // epochs
  std::int64_t step = 0, images = 0;
};

/// A pure function of time; resuming needs no state. With p the progress in epochs and E the length
/// of the run:
///   step         gamma^(milestones passed)            torch.optim.lr_scheduler.MultiStepLR
///   cosine       (1 + cos(pi p / E)) / 2              CosineAnnealingLR
///   warmup_cosine  the same from the end of the warm-up to end_epochs before E, and down to
///                  end_factor, where it stays         YOLOX's yoloxwarmcos
///   poly         (1 - p / E)^power                    PolynomialLR
///   exponential  gamma^p                              ExponentialLR
///   constant     1
/// of the peak, times a warm-up from warmup_factor to 1: linear (LinearLR), or with the share of it
/// that is done raised to warmup_power.
class Schedule {
 public:
  /// `peak` is the rate without warm-up and decay; `epochs` is the length of the run.
  /// REQUIRES: options that check() takes.
  Schedule(ScheduleOptions options, double peak, double epochs);

  /// The rate of the step that begins at `time`.
  double rate(const ScheduleTime& time) const;

  /// "0.02, after a linear warm-up from 2e-05 over 1000 steps, times 0.1 at epochs 8, 11".
  std::string text() const;

 private:
  double warmup(const ScheduleTime& time) const;
  double decay(double progress) const;

  ScheduleOptions options_;
  Quantity warmup_;
  double peak_;
  double epochs_;
};

}  // namespace millrace
