#include <fmt/format.h>

#include <vector>

#include "millrace/migration/detectron2/parts.h"

namespace millrace::detectron2 {

void read_schedule(Translation& t, const EpochLength& epoch) {
  const auto steps = t.read("SOLVER.MAX_ITER");
  const auto drops = t.read("SOLVER.STEPS");
  const auto kind = t.read("SOLVER.LR_SCHEDULER_NAME");
  const auto gamma = t.read("SOLVER.GAMMA");
  t.put("train.epochs", epoch.epochs(steps.real(), steps), steps,
        fmt::format("{} {}", steps.real(), epoch.how()));
  if (kind.text() == "WarmupCosineLR") {
    t.put("schedule.type", words("cosine"), kind);
  } else if (kind.text() == "WarmupMultiStepLR") {
    std::vector<double> milestones;
    for (const double at : drops.reals()) {
      if (at < steps.real())
        milestones.push_back(epoch.epochs(at, drops));
      else
        t.leave_out(drops, fmt::format("{} is not before MAX_ITER", at));
    }
    t.put("schedule.milestones", milestones, drops, epoch.how());
    t.put("schedule.gamma", gamma.real(), gamma);
  } else {
    t.leave_out(kind, "schedule.type is step, cosine, poly, exponential or constant");
  }
  t.expect("SOLVER.BASE_LR_END", literal(0.0), "the rate falls to 0");
  t.expect("SOLVER.RESCALE_INTERVAL", literal(false), "the warm-up is a part of the schedule");
  t.read("SOLVER.NUM_DECAYS");
  const auto warmup = t.read("SOLVER.WARMUP_ITERS");
  t.put("schedule.warmup", words(fmt::format("{} steps", warmup.integer())), warmup);
  t.copy("SOLVER.WARMUP_FACTOR", "schedule.warmup_factor");
  t.expect("SOLVER.WARMUP_METHOD", literal(std::string("linear")), "the warm-up is linear");
}

}  // namespace millrace::detectron2
