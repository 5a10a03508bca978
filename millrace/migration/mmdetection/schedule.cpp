#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "millrace/migration/mmdetection/parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {
namespace {

void put_warmup(Translation& t, double length, bool by_epoch, double times, const Found& from) {
  t.put(
      "schedule.warmup",
      words(by_epoch ? fmt::format("{} epochs", length * times) : fmt::format("{} steps", length)),
      from);
}

void no_warmup(Translation& t) { t.set("schedule.warmup", words("0 steps"), "no warm-up"); }

void read_gamma(Translation& t, const std::string& path) {
  if (const auto found = t.read(path)) t.put("schedule.gamma", found.real(), found);
}

/// `end`: of the scheduler, if it has one.
void read_milestones(Translation& t, const std::string& path, bool by_epoch, const Found& end,
                     const TrainingData& data, const EpochLength& epoch) {
  const auto found = t.read(path);
  if (!found) return;
  std::vector<double> ours;
  for (const double at : found.reals())
    ours.push_back(by_epoch ? rounded_epochs(at * data.times) : epoch.epochs(at, found));
  t.put("schedule.milestones", ours, found, by_epoch ? data.repeated() : epoch.how());
  const auto all = found.reals();
  if (end && !all.empty() && end.real() < std::ranges::max(all))
    t.leave_out(end,
                "ends the scheduler before its last milestones, which MMDetection 3 never "
                "reaches; here they hold");
}

/// Returns whether it is in steps.
bool read_length(Translation& t, const Layout& layout, const TrainingData& data,
                 const EpochLength& epoch) {
  const auto epochs = t.read_any({"train_cfg.max_epochs", "runner.max_epochs", "total_epochs"});
  const auto steps = t.read_any({"train_cfg.max_iters", "runner.max_iters"});
  t.read("runner.type");
  if (layout.is_new) t.read("train_cfg.type");
  if (epochs)
    t.put("train.epochs", rounded_epochs(epochs.real() * data.times), epochs, data.repeated());
  else if (steps)
    t.put("train.epochs", epoch.epochs(steps.real(), steps), steps,
          fmt::format("{} {}", steps.real(), epoch.how()));
  return steps && !epochs;
}

/// 3.x: a list of schedulers, each from `begin` to `end`.
void read_schedulers(Translation& t, const TrainingData& data, const EpochLength& epoch) {
  const auto list = t.look("param_scheduler");
  const auto count = list.need().is_list() ? list.need().list().size() : std::size_t{1};
  bool warms = false;
  for (std::size_t i = 0; i < count; ++i) {
    const auto path =
        list.need().is_list() ? fmt::format("param_scheduler.{}", i) : "param_scheduler";
    const auto type = t.read(path + ".type");
    if (!type) continue;
    const bool by_epoch = flag_or(t, path + ".by_epoch", true);
    const auto begin = t.read(path + ".begin"), end = t.read(path + ".end");
    t.read(path + ".convert_to_iter_based");
    if (type.text() == "LinearLR" && (!begin || begin.real() == 0) && end) {
      put_warmup(t, end.real(), by_epoch, data.times, end);
      if (const auto factor = t.read(path + ".start_factor"))
        t.put("schedule.warmup_factor", factor.real(), factor);
      else
        t.set("schedule.warmup_factor", Config::Data(1.0 / 3), "LinearLR's default");
      warms = true;
    } else if (type.text() == "MultiStepLR") {
      read_milestones(t, path + ".milestones", by_epoch, end, data, epoch);
      read_gamma(t, path + ".gamma");
    } else if (type.text() == "CosineAnnealingLR") {
      t.put("schedule.type", words("cosine"), type);
      t.read(path + ".T_max");
      t.expect(path + ".eta_min", literal(0.0), "the rate falls to 0");
    } else if (type.text() == "PolyLR") {
      t.put("schedule.type", words("poly"), type);
      t.put("schedule.power", real_or(t, path + ".power", 1), type);
      t.expect(path + ".eta_min", literal(0.0), "the rate falls to 0");
    } else {
      t.leave_out(type, "schedule.type is step, cosine, poly, exponential or constant");
    }
    t.leave_out_rest(path, "without a counterpart in [schedule]");
  }
  if (!warms) no_warmup(t);
}

/// 2.x: one dict.
void read_lr_config(Translation& t, bool by_steps, const TrainingData& data,
                    const EpochLength& epoch) {
  const std::string path = "lr_config";
  if (!t.look(path)) return;
  const auto policy = t.read(path + ".policy");
  const auto kind = policy ? policy.text() : "step";
  const bool by_epoch = flag_or(t, path + ".by_epoch", !by_steps);
  if (kind == "step") {
    read_milestones(t, path + ".step", by_epoch && !by_steps, {}, data, epoch);
    read_gamma(t, path + ".gamma");
  } else if (kind == "CosineAnnealing") {
    t.put("schedule.type", words("cosine"), policy);
    t.expect(path + ".min_lr", literal(0.0), "the rate falls to 0");
  } else if (kind == "poly") {
    t.put("schedule.type", words("poly"), policy);
    t.put("schedule.power", real_or(t, path + ".power", 1), policy);
    t.expect(path + ".min_lr", literal(0.0), "the rate falls to 0");
  } else {
    t.leave_out(policy, "schedule.type is step, cosine, poly, exponential or constant");
  }
  const auto warmup = t.read(path + ".warmup");
  const auto length = t.read(path + ".warmup_iters"), ratio = t.read(path + ".warmup_ratio");
  const bool in_epochs = flag_or(t, path + ".warmup_by_epoch", false);
  if (!warmup) return no_warmup(t);
  if (warmup.text() != "linear") t.leave_out(warmup, "the warm-up is linear");
  if (length) put_warmup(t, length.real(), in_epochs, data.times, length);
  if (ratio)
    t.put("schedule.warmup_factor", ratio.real(), ratio);
  else
    t.set("schedule.warmup_factor", Config::Data(0.1), "mmcv's default");
}

}  // namespace

bool read_schedule(Translation& t, const Layout& layout, const TrainingData& data,
                   const EpochLength& epoch) {
  const bool by_steps = read_length(t, layout, data, epoch);
  if (t.look("param_scheduler"))
    read_schedulers(t, data, epoch);
  else
    read_lr_config(t, by_steps, data, epoch);
  return by_steps;
}

}  // namespace millrace::mmdetection
