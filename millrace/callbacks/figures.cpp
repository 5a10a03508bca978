// [callbacks.figures]: accuracies, recall and counts of the detector's heads, of one step in so many.
#include <memory>

#include "millrace/trainer/every.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct FiguresOptions {
  std::string every = "20 steps";
  void describe(Options& o) {
    o.add("every", every, "how often: \"20 steps\", \"1 epoch\", \"10 minutes\"");
  }
};

/// They belong to the step after the one that it is triggered at, and to the first of a training.
class AskForFigures final : public Callback {
 public:
  void before_step(TrainState& state) override {
    if (is_due_) state.ask_for_figures();
  }
  void after_step(TrainState&) override { is_due_ = false; }
  void trigger(TrainState&) override { is_due_ = true; }

  std::string save_state() const override { return is_due_ ? "true" : "false"; }
  void load_state(TrainState&, const std::string& text) override { is_due_ = text == "true"; }

  // The detector of every rank counts its own share.
  bool chief_only() const override { return false; }

 private:
  bool is_due_ = true;
};

MILLRACE_REGISTER(callbacks().add<FiguresOptions>(
    "figures", "accuracies, recall and counts of the detector's heads, among the scalars",
    {[](const Config&) -> std::unique_ptr<Callback> { return std::make_unique<AskForFigures>(); },
     /*by_default=*/true}));

}  // namespace
}  // namespace millrace
