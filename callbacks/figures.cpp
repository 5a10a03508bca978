// [callbacks.figures]: accuracies, recalls and counts of the detector's heads.
#include <nlohmann/json.hpp>

#include "millrace/trainer/callback.h"
#include "millrace/trainer/every.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct FiguresOptions {
  std::string every = "20 steps";
  void describe(Options& o) {
    o.add("every", every, "interval: \"20 steps\", \"1 epoch\", \"10 minutes\"")
        .affects(Affects::run);
  }
};

/// Requests the detector's metrics of the first step and of the step after each trigger.
class RequestMetrics final : public Callback, public SavesState {
 public:
  using Options = FiguresOptions;
  static constexpr bool kByDefault = true;

  void before_step(const TrainState& state) override {
    if (is_due_) state.request_metrics();
  }
  void after_step(const TrainState&) override { is_due_ = false; }
  void trigger(const TrainState&) override { is_due_ = true; }

  nlohmann::json save_state() const override { return is_due_; }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    saved.get_to(is_due_);
  }

  // Runs on every rank, since each rank's detector counts its own share.
  bool chief_only() const override { return false; }

 private:
  bool is_due_ = true;
};

MILLRACE_REGISTER(register_callback<RequestMetrics>(
    "figures", "adds accuracies, recall and counts of the detector's heads to the metrics"));

}  // namespace
}  // namespace millrace
