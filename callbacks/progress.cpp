// [callbacks.progress]: shows progress on standard error, as a bar on a terminal, else as a line at
// intervals.
#include <algorithm>
#include <chrono>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/base/progress_bar.h"
#include "millrace/callbacks/common/progress_line.h"
#include "millrace/callbacks/common/time_left.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

constexpr double kRedrawSeconds = 0.1;

struct ProgressOptions {
  Duration interval = {10};
  void describe(Options& o) {
    o.add("interval", interval, "interval between lines if standard error is not a terminal",
          {.min = 0})
        .affects(Affects::run);
  }
};

class ShowProgress final : public Callback {
 public:
  using Options = ProgressOptions;
  static constexpr bool kByDefault = true;

  explicit ShowProgress(const Options& options)
      : is_terminal_(shows_progress()),
        interval_s_(is_terminal_ ? kRedrawSeconds : options.interval.seconds) {}

  void before_step(const TrainState& state) override {
    step_began_ = Clock::now();
    between_s_ = steps_ > 0 ? seconds(step_began_ - step_ended_) : 0;
    images_before_ = state.at.images;
    waited_before_ = state.spent.data_s;
  }

  void after_step(const TrainState& state) override {
    step_ended_ = Clock::now();
    step_images_.add(static_cast<double>(state.at.images - images_before_));
    step_wait_s_.add(state.spent.data_s - waited_before_);
    left_.add(seconds(step_ended_ - step_began_), between_s_);
    steps_ += 1;
    if (!state.is_last && seconds(step_ended_ - shown_) < interval_s_) return;
    shown_ = step_ended_;
    show(state);
  }

  void after_train(const TrainState& state) override {
    if (!is_terminal_ || steps_ == 0) return;
    show(state);  // shown again below messages logged since the last step
    end_terminal_line();
  }

 private:
  static double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  void show(const TrainState& state) const {
    ProgressMetrics metrics{.epoch = state.at.progress,
                            .epochs = state.total_epochs,
                            .step = state.at.step,
                            .steps = std::max(state.total_steps, state.at.step),
                            .lr = state.lr,
                            .images_per_s = step_images_.value() / left_.step_s(),
                            .data_wait_share = step_wait_s_.value() / left_.step_s()};
    metrics.left_s = left_.seconds(metrics.steps - metrics.step);
    for (const auto& [name, value, kind] : state.scalars) {
      if (name == "loss") {
        metrics.losses.insert(metrics.losses.begin(), {name, value});
        break;
      }
      metrics.losses.emplace_back(name, value);
    }
    for (const auto& [metric, name] : {std::pair{"bbox/AP", "box AP"}, {"segm/AP", "mask AP"}})
      if (const auto score = state.latest.find(metric); score != state.latest.end())
        metrics.scores = {{name, score->second}};  // AP of masks if available, else of boxes
    if (is_terminal_)
      show_terminal_line(progress_line(metrics, terminal_columns()));
    else
      log_info("{}", progress_line(metrics));
  }

  bool is_terminal_;
  double interval_s_;
  Clock::time_point step_began_, step_ended_, shown_ = Clock::now();
  std::int64_t steps_ = 0, images_before_ = 0;
  double waited_before_ = 0;
  double between_s_ = 0;  // seconds between this step and the previous one
  RecentMean step_images_, step_wait_s_;
  TimeLeft left_;
};

MILLRACE_REGISTER(register_callback<ShowProgress>(
    "progress", "shows step, losses, speed and time left on standard error"));

}  // namespace
}  // namespace millrace
