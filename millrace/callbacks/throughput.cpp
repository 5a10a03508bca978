// [callbacks.throughput]: the speed of the training, and its time in data, steps and callbacks.
#include <fmt/format.h>

#include <chrono>
#include <set>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

constexpr double kLeastShare = 0.01;  // of the time: callbacks below it are not listed
constexpr double kSlowSeconds = 1;    // a callback that takes longer
constexpr double kSlowShare = 0.3;    // ... and more of the time of all callbacks is named

struct ThroughputOptions {
  std::string every = "20 steps";
  void describe(Options& o) { o.add("every", every, "the figures are means over so long"); }
};

class MeasureThroughput final : public Callback, public PublishesMetrics {
 public:
  using Options = ThroughputOptions;
  static constexpr bool kByDefault = true;

  void before_train(TrainState& state) override {
    start(state);
    boundary_ = state.spent;
  }

  void before_step(TrainState& state) override {
    name_the_slow(state);
    boundary_ = state.spent;
  }

  void trigger(TrainState& state) override {
    const auto steps = static_cast<double>(state.at.step - step_);
    const auto seconds = seconds_since(started_);
    if (steps <= 0 || seconds <= 0) return;
    const auto& now = state.spent;
    Scalars figures = {
        {"time/images_per_s", static_cast<double>(state.at.images - images_) / seconds},
        {"time/step_s", (now.step_s - spent_.step_s) / steps},
        {"time/data_wait_s", (now.data_s - spent_.data_s) / steps},
        {"time/data_wait_share", (now.data_s - spent_.data_s) / seconds},
        {"time/callbacks_s", (now.callbacks_s - spent_.callbacks_s) / steps}};
    if (now.sync_s > 0)  // there are other ranks
      figures.emplace_back("time/sync_s", (now.sync_s - spent_.sync_s) / steps);
    for (const auto& [name, spent] : now.by_callback)
      if (const auto took = spent - spent_of(spent_, name); took > kLeastShare * seconds)
        figures.emplace_back(fmt::format("time/callbacks/{}_s", name), took / steps);
    state.publish(figures);
    start(state);
  }

  std::vector<std::string> publishes() const override {
    return {"time/images_per_s",    "time/step_s",      "time/sync_s",     "time/data_wait_s",
            "time/data_wait_share", "time/callbacks_s", "time/callbacks/*"};
  }

 private:
  static double spent_of(const Spent& spent, const std::string& name) {
    const auto found = spent.by_callback.find(name);
    return found == spent.by_callback.end() ? 0 : found->second;
  }

  void start(const TrainState& state) {
    started_ = Clock::now();
    step_ = state.at.step;
    images_ = state.at.images;
    spent_ = state.spent;
  }

  /// Names each slow callback once, for the last step boundary.
  void name_the_slow(const TrainState& state) {
    const auto all = state.spent.callbacks_s - boundary_.callbacks_s;
    if (all <= kSlowSeconds) return;
    for (const auto& [name, spent] : state.spent.by_callback) {
      const auto took = spent - spent_of(boundary_, name);
      if (took <= kSlowSeconds || took <= kSlowShare * all || !named_.insert(name).second) continue;
      spdlog::info(
          "callback '{}' took {} at step {}, of {} for all callbacks; it is not named again", name,
          duration_text(took), state.at.step, duration_text(all));
    }
  }

  Clock::time_point started_;
  std::int64_t step_ = 0, images_ = 0;
  Spent spent_;     // when the window began
  Spent boundary_;  // when the last step began
  std::set<std::string> named_;
};

MILLRACE_REGISTER(register_callback<MeasureThroughput>(
    "throughput", "images per second, and seconds of data, steps and callbacks"));

}  // namespace
}  // namespace millrace
