// [callbacks.stop_early]: ends training with a checkpoint when a metric stops improving.
#include <nlohmann/json.hpp>

#include "millrace/callbacks/common/watched_metric.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct StopEarlyOptions : Stall::Options {
  void describe(millrace::Options& o) { Stall::Options::describe(o, "training ends"); }
};

class StopEarly final : public Callback, public ReadsMetrics, public SavesState {
 public:
  using Options = StopEarlyOptions;

  StopEarly(const Options& options, std::string name) : name_(std::move(name)), stall_(options) {}

  /// A training that has ended in this way stops again when it is resumed.
  void before_train(const TrainState& state) override { stop_if_over(state); }

  void on_scalars(const TrainState& state, const Moment& of, const Scalars& scalars) override {
    const auto value = stall_.in(scalars);
    if (!value || stall_.is_over()) return;
    stall_.add(*value, of);
    stop_if_over(state);
  }

  std::vector<std::string> watches() const override { return {stall_.metric().name()}; }
  nlohmann::json save_state() const override { return stall_.state(); }
  void load_state(const TrainState&, const nlohmann::json& saved) override { stall_.load(saved); }

 private:
  void stop_if_over(const TrainState& state) const {
    if (!stall_.is_over()) return;
    state.stop("'" + name_ + "' (" + stall_.text() + ")");
    state.save_checkpoint();
  }

  std::string name_;
  Stall stall_;
};

MILLRACE_REGISTER(register_callback<StopEarly>("stop_early",
                                               "ends training when a metric stops improving"));

}  // namespace
}  // namespace millrace
