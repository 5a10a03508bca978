// The learning rate over time, measured in epochs so that it is valid for any batch and data set
// size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

/// Decay of the learning rate; see Schedule.
enum class ScheduleType { step, cosine, warmup_cosine, poly, exponential, constant };
inline std::vector<std::string> value_names(ScheduleType) {
  return {"step", "cosine", "warmup_cosine", "poly", "exponential", "constant"};
}

struct ScheduleOptions {
  ScheduleType type = ScheduleType::step;
  std::vector<double> milestones = {8, 11};  // epochs of the milestones for "step"
  double gamma = 0.1;                        // factor per milestone, or per epoch for "exponential"
  double power = 0.9;                        // exponent for "poly"
  double end_factor = 0;                     // final factor of the rate for "warmup_cosine"
  double end_epochs = 0;  // number of final epochs with that constant rate, for "warmup_cosine"
  std::string warmup = "1000 steps";  // length in steps, epochs or images
  double warmup_factor = 0.001;       // factor of the rate at step 0
  double warmup_power = 1;            // exponent of the warm-up; 1 = linear, 2 = quadratic

  void describe(Options& o);

  /// Throws ConfigError if the options are invalid for a run of `epochs`: milestones that do not
  /// ascend or are beyond the end, a warm-up that reaches a milestone or the end, values that the
  /// type does not use.
  void check(const Config& table, double epochs) const;

  /// Checks a warm-up in steps or images, which requires the number of images of an epoch and of a
  /// step. Throws ConfigError.
  void check_warmup(double epochs, std::int64_t epoch_images, std::int64_t images_per_step) const;

 private:
  /// Returns why a run of `epochs` cannot warm up for `length` epochs; empty = it can.
  std::string objection(double length, double epochs) const;
};

/// Progress of a training.
struct ScheduleTime {
  double progress = 0;  // epochs done
  std::int64_t step = 0, images = 0;
};

/// The learning rate as a pure function of time, so that resuming needs no state. It is the peak
/// rate times a warm-up and one of these factors, with p the progress in epochs and E the length of
/// the run:
///   step         gamma^(milestones passed)            torch.optim.lr_scheduler.MultiStepLR
///   cosine       (1 + cos(pi p / E)) / 2              CosineAnnealingLR
///   warmup_cosine  the same from the end of the warm-up to end_epochs before E, and down to
///                  end_factor, where it stays         YOLOX's yoloxwarmcos
///   poly         (1 - p / E)^power                    PolynomialLR
///   exponential  gamma^p                              ExponentialLR
///   constant     1
/// The warm-up rises from warmup_factor to 1: linearly (LinearLR), or with its completed share
/// raised to the power of warmup_power.
class Schedule {
 public:
  /// `peak`: rate without warm-up and decay. `epochs`: length of the run. REQUIRES: options that
  /// check() accepts.
  Schedule(ScheduleOptions options, double peak, double epochs);

  /// Returns the rate of the step that begins at `time`.
  double rate(const ScheduleTime& time) const;

  /// Returns e.g. "0.02, after a linear warm-up from 2e-05 over 1000 steps, times 0.1 at epochs 8,
  /// 11".
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
