// [callbacks.reduce_on_plateau]: multiplies a hyper-parameter, usually the learning rate, by a
// factor when a metric stops improving.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "millrace/base/log.h"
#include "millrace/callbacks/common/watched_metric.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct PlateauOptions : Stall::Options {
  std::string parameter = "lr_factor";
  double factor = 0.1;
  double min = 0;
  std::int64_t cooldown = 0;

  void describe(millrace::Options& o) {
    Stall::Options::describe(o, "the parameter is multiplied by `factor`");
    o.add("parameter", parameter,
          "hyper-parameter to change; lr_factor multiplies the schedule's learning rate",
          HyperParameters::all_names());
    o.add("factor", factor, "factor of the parameter's value at a reduction", {.min = 0, .max = 1});
    o.add("min", min, "minimum value of the parameter");
    o.add("cooldown", cooldown, "number of new values to ignore after a reduction", {.min = 0});
  }
};

/// Follows torch.optim.lr_scheduler.ReduceLROnPlateau with threshold_mode "abs" and threshold
/// `min_delta`.
class ReduceOnPlateau final : public Callback, public ReadsMetrics, public SavesState {
 public:
  using Options = PlateauOptions;

  ReduceOnPlateau(const Options& options, std::string name)
      : options_(options), name_(std::move(name)), stall_(options) {}

  void before_train(const TrainState& state) override {
    state.hyper.check(options_.parameter, options_.min);
  }

  void on_scalars(const TrainState& state, const Moment& of, const Scalars& scalars) override {
    const auto value = stall_.in(scalars);
    if (!value) return;
    stall_.add(*value, of);
    if (cooldown_left_ > 0) {
      cooldown_left_ -= 1;
      stall_.forgive();
    }
    if (!stall_.is_over()) return;
    reduce(state);
    cooldown_left_ = options_.cooldown;
    stall_.forgive();
  }

  std::vector<std::string> watches() const override { return {stall_.metric().name()}; }

  nlohmann::json save_state() const override {
    return {{"stall", stall_.state()}, {"cooldown", cooldown_left_}};
  }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    const auto& stall = saved.at("stall");
    // Checkpoints of version 0.1 store it as text.
    stall_.load(stall.is_string() ? nlohmann::json::parse(stall.get<std::string>()) : stall);
    saved.at("cooldown").get_to(cooldown_left_);
  }

 private:
  void reduce(const TrainState& state) const {
    const auto now = state.hyper.at(options_.parameter);
    const auto next = std::max(now * options_.factor, options_.min);
    if (next >= now) return;
    log_info("callback '{}': {} is {} instead of {} from the next step: {}", name_,
             options_.parameter, next, now, stall_.text());
    state.hyper.set(options_.parameter, next, name_);
  }

  PlateauOptions options_;
  std::string name_;
  Stall stall_;
  std::int64_t cooldown_left_ = 0;
};

MILLRACE_REGISTER(register_callback<ReduceOnPlateau>(
    "reduce_on_plateau", "lowers the learning rate when a metric stops improving"));

}  // namespace
}  // namespace millrace
