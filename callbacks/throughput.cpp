// [callbacks.throughput]: reports the speed of the training, the time of its parts, and the part
// that limits it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

constexpr double kMinShare = 0.01;  // share of the time; callbacks below it are not listed
constexpr double kSlowSeconds = 1;  // limit of one call of a callback; slower ones are named
constexpr double kSlowShare = 0.3;  // and minimum share of the time of all callbacks
// Minimum difference in share to report another part as the limit.
constexpr double kClearDifference = 0.1;

struct ThroughputOptions {
  std::string every = "20 steps";
  void describe(Options& o) {
    o.add("every", every, "interval over which the metrics are means").affects(Affects::run);
  }
};

/// Returns the seconds that the data stages have been busy, by name, summed over all threads.
std::map<std::string, double> busy_stages(const TrainState& state) {
  std::map<std::string, double> busy;
  if (const auto report = state.activity->data())
    for (const auto& stage : report->stages) busy[stage.name] += stage.busy_s;
  return busy;
}

class MeasureThroughput final : public Callback, public PublishesMetrics {
 public:
  using Options = ThroughputOptions;
  static constexpr bool kByDefault = true;

  void before_train(const TrainState& state) override {
    start(state);
    boundary_ = state.spent;
  }

  void before_step(const TrainState& state) override {
    log_slow_callbacks(state);
    boundary_ = state.spent;
  }

  void trigger(const TrainState& state) override {
    const auto steps = static_cast<double>(state.at.step - step_);
    const auto seconds = seconds_since(started_);
    if (steps <= 0 || seconds <= 0) return;
    const auto& now = state.spent;
    Scalars metrics = {
        {"time/images_per_s", static_cast<double>(state.at.images - images_) / seconds},
        {"time/step_s", (now.step_s - spent_.step_s) / steps},
        {"time/data_wait_s", (now.data_s - spent_.data_s) / steps},
        {"time/data_wait_share", (now.data_s - spent_.data_s) / seconds},
        {"time/callbacks_s", (now.callbacks_s - spent_.callbacks_s) / steps}};
    if (now.sync_s > 0)  // there are other ranks
      metrics.emplace_back("time/sync_s", (now.sync_s - spent_.sync_s) / steps);
    for (const auto& [name, spent] : now.by_callback)
      if (const auto took = spent - spent_of(spent_.by_callback, name); took > kMinShare * seconds)
        metrics.emplace_back(fmt::format("time/callbacks/{}_s", name), took / steps);
    const auto shares = shares_of(now, seconds);
    for (const auto& [part, share] : shares)
      if (part != kData) metrics.emplace_back(fmt::format("time/{}_share", part), share);
    log_bottleneck(state, shares);
    state.publish(metrics);
    start(state);
  }

  std::vector<std::string> publishes() const override {
    return {
        "time/images_per_s",    "time/step_s",        "time/sync_s",     "time/data_wait_s",
        "time/data_wait_share", "time/compute_share", "time/sync_share", "time/checkpoints_share",
        "time/callbacks_share", "time/callbacks_s",   "time/callbacks/*"};
  }

 private:
  static constexpr auto kData = "data";
  using Shares = std::vector<std::pair<std::string, double>>;

  /// Returns shares of the time since the last trigger.
  Shares shares_of(const Spent& now, double seconds) const {
    const auto share = [&](double Spent::*part) { return (now.*part - spent_.*part) / seconds; };
    Shares shares = {{kData, share(&Spent::data_s)},
                     {"compute", share(&Spent::step_s) - share(&Spent::sync_s)}};
    if (now.sync_s > 0) shares.emplace_back("sync", share(&Spent::sync_s));
    shares.emplace_back("callbacks", share(&Spent::callbacks_s));
    shares.emplace_back("checkpoints", share(&Spent::checkpoints_s));
    return shares;
  }

  /// Logs the part that takes most of the time, once and whenever it clearly changes.
  void log_bottleneck(const TrainState& state, const Shares& shares) {
    const auto& [part, share] = *std::ranges::max_element(shares, {}, &Shares::value_type::second);
    const auto before = std::ranges::find(shares, bottleneck_, &Shares::value_type::first);
    if (part == bottleneck_ ||
        (before != shares.end() && share < before->second + kClearDifference))
      return;
    bottleneck_ = part;
    auto text = fmt::format("bound by {}: {:.0f} % of the time", part, 100 * share);
    if (part == kData)
      text += of_busiest_stage(state);
    else if (part == "callbacks")
      text += of_slowest_callback(state);
    std::vector<std::string> others;
    for (const auto& [name, other] : shares)
      if (name != part && other >= kMinShare)
        others.push_back(fmt::format("{} {:.0f} %", name, 100 * other));
    log_info("{}{}", text, others.empty() ? "" : fmt::format(" ({})", fmt::join(others, ", ")));
  }

  std::string of_busiest_stage(const TrainState& state) const {
    double all = 0;
    std::pair<std::string, double> most;
    for (const auto& [stage, busy_s] : busy_stages(state)) {
      const auto took = busy_s - spent_of(busy_, stage);
      all += took;
      if (took > most.second) most = {stage, took};
    }
    return all <= 0
               ? ", in data servers"
               : fmt::format(", of which '{}' takes {:.0f} %", most.first, 100 * most.second / all);
  }

  std::string of_slowest_callback(const TrainState& state) const {
    std::pair<std::string, double> most;
    for (const auto& [name, spent] : state.spent.by_callback)
      if (const auto took = spent - spent_of(spent_.by_callback, name); took > most.second)
        most = {name, took};
    return fmt::format(", most of it '{}'", most.first);
  }

  static double spent_of(const std::map<std::string, double>& spent, const std::string& name) {
    const auto found = spent.find(name);
    return found == spent.end() ? 0 : found->second;
  }

  void start(const TrainState& state) {
    started_ = Clock::now();
    step_ = state.at.step;
    images_ = state.at.images;
    spent_ = state.spent;
    busy_ = busy_stages(state);
  }

  /// Warns once about each callback that was slow at the last step boundary.
  void log_slow_callbacks(const TrainState& state) {
    const auto all = state.spent.callbacks_s - boundary_.callbacks_s;
    if (all <= kSlowSeconds) return;
    for (const auto& [name, spent] : state.spent.by_callback) {
      const auto took = spent - spent_of(boundary_.by_callback, name);
      if (took <= kSlowSeconds || took <= kSlowShare * all || !logged_.insert(name).second)
        continue;
      log_info("callback '{}' took {} at step {}, of {} for all callbacks; not logged again", name,
               duration_text(took), state.at.step, duration_text(all));
    }
  }

  Clock::time_point started_;
  std::int64_t step_ = 0, images_ = 0;
  Spent spent_;                         // times at the start of the window
  std::map<std::string, double> busy_;  // busy seconds of the stages at the start of the window
  Spent boundary_;                      // times at the start of the last step
  std::set<std::string> logged_;
  std::string bottleneck_;  // part that was logged last
};

MILLRACE_REGISTER(register_callback<MeasureThroughput>(
    "throughput", "measures images per second, and seconds of data, steps and callbacks"));

}  // namespace
}  // namespace millrace
