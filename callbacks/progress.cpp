// [callbacks.progress]: where the training stands, on standard error: a bar on a terminal, else a
// line now and then.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/log.h"
#include "callbacks/progress_line.h"
#include "trainer/train_state.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kRedrawSeconds = 0.1;
constexpr double kSmoothing = 0.05;  // weight of the newest step in the means shown
constexpr int kBarWidth = 12;        // characters

struct ProgressOptions {
  double seconds = 10;
  void describe(Options& o) {
    o.add("seconds", seconds, "between lines where standard error is no terminal", {.min = 0});
  }
};

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col - 1 : 79;
}

class ShowProgress final : public Callback {
 public:
  explicit ShowProgress(double seconds)
      : is_terminal_(::isatty(STDERR_FILENO) != 0),
        interval_s_(is_terminal_ ? kRedrawSeconds : seconds) {}

  void before_step(TrainState& state) override {
    step_began_ = Clock::now();
    images_before_ = state.at.images;
    waited_before_ = state.spent.data_s;
  }

  void after_step(TrainState& state) override {
    const auto now = Clock::now();
    follow(step_s_, std::chrono::duration<double>(now - step_began_).count());
    follow(step_images_, static_cast<double>(state.at.images - images_before_));
    follow(step_wait_s_, state.spent.data_s - waited_before_);
    steps_ += 1;
    if (!state.is_last && std::chrono::duration<double>(now - shown_).count() < interval_s_) return;
    shown_ = now;
    show(state);
  }

  void after_train(TrainState&) override {
    if (is_terminal_ && steps_ > 0) fmt::print(stderr, "\n");
  }

 private:
  /// A mean that forgets; the first steps count alike.
  void follow(double& mean, double value) const {
    mean += (value - mean) * std::max(kSmoothing, 1.0 / static_cast<double>(steps_ + 1));
  }

  void show(const TrainState& state) const {
    ProgressFigures figures{.epoch = state.at.progress,
                            .epochs = state.total_epochs,
                            .step = state.at.step,
                            .steps = std::max(state.total_steps, state.at.step),
                            .lr = state.lr,
                            .images_per_s = step_images_ / step_s_,
                            .data_wait_share = step_wait_s_ / step_s_};
    figures.left_s = step_s_ * static_cast<double>(figures.steps - figures.step);
    for (const auto& [name, value] : state.scalars) {
      if (name == "loss") {
        figures.losses.insert(figures.losses.begin(), {name, value});
        break;
      }
      figures.losses.emplace_back(name, value);
    }
    if (is_terminal_)
      fmt::print(stderr, "\r\x1b[K{}", progress_line(figures, kBarWidth, terminal_columns()));
    else
      spdlog::info("{}", progress_line(figures, 0, 0));
    std::fflush(stderr);
  }

  bool is_terminal_;
  double interval_s_;
  Clock::time_point step_began_, shown_ = Clock::now();
  std::int64_t steps_ = 0, images_before_ = 0;
  double waited_before_ = 0;
  double step_s_ = 0, step_images_ = 0, step_wait_s_ = 0;  // means
};

const bool registered = callbacks().add<ProgressOptions>(
    "progress", "shows step, losses, speed and time left on standard error",
    {[](const Config& table) -> std::unique_ptr<Callback> {
       return std::make_unique<ShowProgress>(read_options<ProgressOptions>(table).seconds);
     },
     /*by_default=*/true});

}  // namespace
}  // namespace millrace
