// [callbacks.average_weights]: an exponential moving average of the weights, which detects better
// than the last ones while the learning rate is high. Checkpoints keep it as
// callback.NAME.safetensors, a file of weights.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "millrace/detector/restore.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct AverageWeightsOptions {
  double decay = 0.9998;
  bool warm_up = true;

  void describe(Options& o) {
    o.add("decay", decay, "weight of the average before a step in that after it",
          {.min = 0, .max = 1});
    o.add("warm_up", warm_up, "the decay is no more than (1 + steps) / (10 + steps)");
  }
};

/// average = decay average + (1 - decay) value after each step, with the warm-up of
/// tf.train.ExponentialMovingAverage. Running statistics and frozen parameters are the model's own.
class AverageWeights final : public Callback, public KeepsWeights {
 public:
  using Options = AverageWeightsOptions;

  explicit AverageWeights(const AverageWeightsOptions& options) : options_(options) {}

  void before_train(TrainState& state) override {
    const auto loaded = std::exchange(all_, {});
    for (const auto& parameter : state.model.parameters()) {
      const auto value = parameter.value.detach();
      const auto kept = parameter.trainable() ? value.clone() : value;
      all_.emplace_back(parameter.name, kept);
      if (!parameter.trainable()) continue;
      values_.push_back(value);
      averages_.push_back(kept);
    }
    if (loaded.empty()) return;
    // The model has the rest from the checkpoint already.
    restore(all_, loaded, "callback '" + state.caller + "'");
  }

  void after_step(TrainState& state) override {
    const c10::NoGradGuard no_graph;
    const auto steps = static_cast<double>(state.at.step);
    const auto decay =
        options_.warm_up ? std::min(options_.decay, (1 + steps) / (10 + steps)) : options_.decay;
    at::_foreach_lerp_(averages_, values_, at::Scalar(1 - decay));
  }

  /// Every rank may evaluate them.
  bool chief_only() const override { return false; }

  NamedTensors save_tensors() const override { return all_; }
  void load_tensors(TrainState&, const NamedTensors& tensors) override { all_ = tensors; }

 private:
  AverageWeightsOptions options_;
  NamedTensors all_;                           // averages, and the model's other tensors
  std::vector<at::Tensor> values_, averages_;  // of trained parameters
};

MILLRACE_REGISTER(register_callback<AverageWeights>(
    "average_weights", "keeps an exponential moving average of the weights"));

}  // namespace
}  // namespace millrace
