// [callbacks.average_weights]: an exponential moving average of the weights. While the learning
// rate is high, it detects better than the last weights. Checkpoints store it as
// callback.NAME.safetensors, a weight file.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_lerp.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "millrace/models/detector/restore.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct AverageWeightsOptions {
  double decay = 0.9998;
  bool warm_up = true;
  std::int64_t ramp = 0;
  bool buffers = false;

  void describe(Options& o) {
    o.add("decay", decay, "fraction of the average that is kept per step", {.min = 0, .max = 1});
    o.add("warm_up", warm_up, "limit the decay to (1 + steps) / (10 + steps)");
    o.add("ramp", ramp,
          "multiply the decay by 1 - exp(-steps / ramp) instead, as timm and YOLOX do; 0 = no ramp",
          {.min = 0, .unit = "steps"});
    o.add("buffers", buffers, "also average running statistics");
  }

  void check(const Config& table) const {
    if (ramp > 0)
      refuse_unused<AverageWeightsOptions>(table, {"warm_up"}, "with a ramp, which replaces it");
  }

  double decay_at(double step) const {
    if (ramp > 0) return decay * (1 - std::exp(-step / static_cast<double>(ramp)));
    return warm_up ? std::min(decay, (1 + step) / (10 + step)) : decay;
  }
};

/// After each step, average = decay average + (1 - decay) value, with the warm-up of
/// tf.train.ExponentialMovingAverage or the ramp of timm's ModelEma. Frozen parameters are copied
/// from the model, and so are running statistics unless `buffers` is set.
class AverageWeights final : public Callback, public KeepsWeights {
 public:
  using Options = AverageWeightsOptions;

  AverageWeights(const AverageWeightsOptions& options, std::string name)
      : options_(options), name_(std::move(name)) {}

  void before_train(const TrainState& state) override {
    const auto loaded = std::exchange(all_, {});
    for (const auto& parameter : state.model.parameters()) {
      const auto value = parameter.value.detach();
      const bool is_statistic = parameter.kind == ParameterKind::buffer;
      const bool averaged = parameter.trainable() || (options_.buffers && is_statistic);
      const auto kept = averaged ? value.clone() : value;
      all_.emplace_back(parameter.name, kept);
      if (!averaged) continue;
      values_.push_back(value);
      averages_.push_back(kept);
    }
    if (loaded.empty()) return;
    // The other tensors of the model are already restored from the checkpoint.
    restore(all_, loaded, "callback '" + name_ + "'");
  }

  void after_step(const TrainState& state) override {
    const c10::NoGradGuard no_graph;
    const auto decay = options_.decay_at(static_cast<double>(state.at.step));
    at::_foreach_lerp_(averages_, values_, at::Scalar(1 - decay));
  }

  /// Runs on every rank, since every rank may evaluate the average.
  bool chief_only() const override { return false; }

  NamedTensors save_tensors() const override { return all_; }
  void load_tensors(const TrainState&, const NamedTensors& tensors) override { all_ = tensors; }

 private:
  AverageWeightsOptions options_;
  std::string name_;
  NamedTensors all_;  // the averages, and the other tensors of the model
  // Model tensors that are averaged, and their averages.
  std::vector<at::Tensor> values_, averages_;
};

MILLRACE_REGISTER(register_callback<AverageWeights>(
    "average_weights", "keeps an exponential moving average of the weights"));

}  // namespace
}  // namespace millrace
