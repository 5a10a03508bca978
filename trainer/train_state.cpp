#include "millrace/trainer/train_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/errors.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/checkpoint/checkpoint_holds.h"
#include "millrace/trainer/checkpoint/memory_checkpoints.h"
#include "millrace/trainer/optimizer/optimizer_options.h"
#include "millrace/trainer/validation_pass.h"

namespace millrace {
namespace {

/// Throws Error if a callback with `allowed` as its metrics must not publish `name`.
void check_name(const std::string& name, const std::vector<std::string>& allowed,
                const StepMetrics& of_step) {
  if (is_training_metric(name) || std::ranges::count(of_step, name, &StepMetric::name) > 0)
    throw Error(
        fmt::format("it publishes '{0}', a metric that the trainer itself reports; choose another "
                    "name, e.g. 'my/{0}'",
                    name));
  if (std::ranges::none_of(allowed, [&](const auto& one) { return matches_wildcards(one, name); }))
    throw Error(
        fmt::format("it publishes '{}', which its publishes() does not contain ({}); add it there, "
                    "so that other callbacks can watch it",
                    name, allowed.empty() ? "it is empty" : "it contains " + joined(allowed)));
}

}  // namespace

bool is_training_metric(std::string_view name) {
  constexpr std::string_view kNames[] = {"step",           "epoch",   "images",       "time",
                                         "loss",           "lr",      "loss_scale",   "bad_steps",
                                         "overflow_steps", "returns", "gradient_norm"};
  return std::ranges::count(kNames, name) > 0 || name == "lr_factor" ||
         name.starts_with("optimizer.");
}

TrainState::TrainState(Detector& trained, const OptimizerOptions& options)
    : model(trained),
      activity(std::make_unique<Activity>()),
      hyper(options),
      cluster(&Cluster::alone()),
      checkpoint_holds(std::make_unique<CheckpointHolds>()) {}

TrainState::~TrainState() = default;

CheckpointHold TrainState::hold_checkpoint(std::int64_t step) const {
  return checkpoint_holds->hold(step);
}

void TrainState::report_progress() const { activity->report_progress(); }

PassWatch TrainState::pass_watch() const {
  return {.cancelled = [] { return !StopSignals::received().empty(); },
          .report_progress = [this] { report_progress(); },
          .leftovers = cancelled_flows.get()};
}

void TrainState::keep_in_memory() const {
  requests_.memory = std::make_unique<MemoryCheckpoints>(folder, *cluster);
}

void TrainState::publish(const Moment& of, const Scalars& more) const {
  if (requests_.allowed)
    for (const auto& [name, value] : more) check_name(name, *requests_.allowed, scalars);
  auto& all = of.step == at.step ? requests_.metrics : requests_.late[of.step].second;
  if (of.step != at.step) requests_.late[of.step].first = of;
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace millrace
