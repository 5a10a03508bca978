// [callbacks.watchdog]: warns about stalls and slow steps, and reports where they hang.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>

#include "millrace/base/events/last_events.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/callbacks/common/stall.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/ticker.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

enum class OnStall { warn, abort };
std::vector<std::string> value_names(OnStall) { return {"warn", "abort"}; }

struct WatchdogOptions {
  Duration after = {300};
  Duration step_limit;
  OnStall on_stall = OnStall::warn;

  void describe(Options& o) {
    o.add("after", after, "report a stall after this long without progress", {.min = 0.001})
        .affects(Affects::run);
    o.add("step_limit", step_limit,
          "maximum time of a step, including its wait for data; \"0 seconds\" = unlimited",
          {.min = 0})
        .affects(Affects::run);
    o.add("on_stall", on_stall,
          "action on a stall; abort: also end the process, so that another one can resume")
        .affects(Affects::run);
  }
};

Clock::duration time_of(const Duration& duration) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(duration.seconds));
}

class WatchTraining final : public Callback {
 public:
  using Options = WatchdogOptions;
  static constexpr bool kByDefault = true;

  explicit WatchTraining(const Options& options)
      : after_(time_of(options.after)),
        aborts_(options.on_stall == OnStall::abort),
        watch_(after_) {
    if (options.step_limit.seconds > 0) step_limit_ = time_of(options.step_limit);
  }

  void before_train(const TrainState& state) override {
    constexpr Clock::duration kMaxPeriod = std::chrono::seconds(1);
    const auto period = std::min({after_ / 8, step_limit_.value_or(after_) / 8, kMaxPeriod});
    ticker_ = std::make_unique<Ticker>(period, [this, &state] { check_progress(state); });
  }

  void before_step(const TrainState& state) override {
    before_ = state.spent;
    step_began_ = Clock::now().time_since_epoch().count();
  }

  void after_step(const TrainState& state) override {
    const auto took = Clock::now().time_since_epoch() - Clock::duration(step_began_.exchange(0));
    if (!step_limit_ || took <= *step_limit_) return;
    const auto& spent = state.spent;
    log_warning("step {} took {}: {} waiting for data, {} in the step itself, {} in callbacks",
                state.at.step, seconds_text(took), duration_text(spent.data_s - before_.data_s),
                duration_text(spent.step_s - before_.step_s),
                duration_text(spent.callbacks_s - before_.callbacks_s));
  }

  void after_train(const TrainState& state) override {
    ticker_.reset();
    check_progress(state);
  }

  /// Runs on every rank, since any process may hang.
  bool chief_only() const override { return false; }

 private:
  static std::string seconds_text(Clock::duration time) {
    return duration_text(std::chrono::duration<double>(time).count());
  }

  /// Called by the ticker's thread while that runs.
  void check_progress(const TrainState& state) {
    const auto at = Clock::now();
    const auto now = state.activity->now();
    if (const auto length = watch_.ended(now))
      log_warning("training continues after a stall of {}", seconds_text(*length));
    if (watch_.sees(now, at))
      report_stall(
          state, at,
          fmt::format("training has stalled for {}", seconds_text(at - now.last_progress)));
    const Clock::time_point began{Clock::duration(step_began_.load())};
    if (!step_limit_ || began == Clock::time_point{} || began == reported_) return;
    if (at - began > *step_limit_) {
      reported_ = began;
      report_stall(state, at,
                   fmt::format("a step has been running for {}", seconds_text(at - began)));
    }
  }

  void report_stall(const TrainState& state, Clock::time_point at, const std::string& what) const {
    auto text = what + "\n  " + stall_text(state.cluster->rank(), *state.activity, at);
    if (write_last_events(what)) text += "\n  its last events are in " + last_events_file();
    if (!aborts_) return log_warning("{}", text);
    log_error(
        "{}\n  ending the process (callbacks.watchdog.on_stall); --resume continues from its last "
        "checkpoint",
        text);
    std::_Exit(1);  // no cleanup, since a thread hangs
  }

  Clock::duration after_;
  std::optional<Clock::duration> step_limit_;
  bool aborts_;
  std::atomic<Clock::rep> step_began_ = 0;  // start of the current step; 0 = between two steps
  Spent before_;                            // times before the step
  StallWatch watch_;                        // watch_ and reported_ are only for the ticker's thread
  Clock::time_point reported_{};            // start of the step that was last reported
  std::unique_ptr<Ticker> ticker_;
};

MILLRACE_REGISTER(register_callback<WatchTraining>("watchdog",
                                                   "reports when training stalls, and where"));

}  // namespace
}  // namespace millrace
