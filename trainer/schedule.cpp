#include "trainer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace {

void ScheduleOptions::describe(Options& o) {
  o.add("kind", kind, "how the rate falls", {"step", "cosine", "constant"});
  o.add("milestones", milestones, "where kind = \"step\" multiplies by gamma",
        {.min = 0, .unit = "epochs"});
  o.add("gamma", gamma, "factor at each milestone", {.min = 0, .max = 1});
  o.add("warmup_epochs", warmup_epochs, "linear warm-up; 0: warmup_steps says how long",
        {.min = 0, .unit = "epochs"});
  o.add("warmup_steps", warmup_steps, "linear warm-up where warmup_epochs is 0",
        {.min = 0, .unit = "steps"});
  o.add("warmup_factor", warmup_factor, "share of the rate at step 0", {.min = 0, .max = 1});
}

Schedule::Schedule(ScheduleOptions options, double peak, double epochs)
    : options_(std::move(options)), peak_(peak), epochs_(epochs) {}

double Schedule::rate(double progress, std::int64_t step) const {
  return peak_ * warmup(progress, step) * decay(progress);
}

double Schedule::warmup(double progress, std::int64_t step) const {
  const bool in_epochs = options_.warmup_epochs > 0;
  const double length =
      in_epochs ? options_.warmup_epochs : static_cast<double>(options_.warmup_steps);
  const double done = in_epochs ? progress : static_cast<double>(step);
  if (done >= length) return 1;
  return options_.warmup_factor + (1 - options_.warmup_factor) * done / length;
}

double Schedule::decay(double progress) const {
  if (options_.kind == "cosine")
    return 0.5 * (1 + std::cos(std::numbers::pi * std::min(progress / epochs_, 1.0)));
  if (options_.kind == "constant") return 1;
  const auto passed = std::count_if(options_.milestones.begin(), options_.milestones.end(),
                                    [&](double milestone) { return progress >= milestone; });
  return std::pow(options_.gamma, static_cast<double>(passed));
}

}  // namespace millrace
