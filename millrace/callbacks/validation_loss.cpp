// [callbacks.validation_loss]: the losses over the validation split, as val/loss and val/NAME.
#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/detector/make_detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/cluster/gather_values.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct ValidationLossOptions {
  std::string every = "1 epoch";
  std::int64_t images = 0;

  void describe(Options& o) {
    o.add("every", every, "how often; also after the last step");
    o.add("images", images, "only the first so many; 0: all", {.min = 0, .unit = "images"});
  }
};

/// Means of the detector's losses over images; each rank measures its share. Random draws are the
/// same every time. If a signal to stop comes meanwhile, training ends there and a resumed one
/// measures first.
class ValidationLoss final : public Callback, public PublishesMetrics, public SavesState {
 public:
  using Options = ValidationLossOptions;

  explicit ValidationLoss(const Options& options) : images_(options.images) {}

  void before_train(TrainState& state) override {
    if (!state.validation)
      spdlog::warn("no validation split (data.val): callback '{}' does nothing", state.caller);
    if (owed_) trigger(state);
  }

  void trigger(TrainState& state) override {
    if (!state.validation) return;
    const c10::NoGradGuard no_graph;
    const auto began = Clock::now();
    std::map<std::string, double> sums;  // over images
    std::int64_t seen = 0;
    const auto share = share_of(*state.cluster);
    const auto wanted = (images_ + share.ranks - 1 - share.rank) / share.ranks;  // of this rank
    std::int64_t number = 0;
    const auto measure = [&](const Batch& batch) {
      const auto count = static_cast<double>(batch.size());
      const auto losses = losses_of(state.model, batch, {.step = number++, .measured_only = true});
      std::vector<at::Tensor> values;
      for (const auto& [name, loss] : losses) values.push_back(loss.reshape({}));
      DeviceNumbers numbers(at::stack(values));
      auto next = numbers.get().begin();
      for (const auto& [name, loss] : losses) {
        const auto value = *next++ * count;
        sums["val/" + name] += value;
        sums["val/loss"] += value;
      }
      seen += static_cast<std::int64_t>(batch.size());
      return images_ == 0 || seen < wanted;
    };
    owed_ = (images_ == 0 || wanted > 0) &&
            !go_through(state.validation->start(share), state.pass_watch(), measure);
    if (share.ranks > 1) add_up(*state.cluster, seen, sums);
    if (owed_) {
      state.stop(StopSignals::received());
      return state.save_checkpoint();
    }
    if (seen == 0) return;
    Scalars means;
    for (const auto& [name, sum] : sums) means.emplace_back(name, sum / static_cast<double>(seen));
    state.publish(means);
    const auto took = seconds_since(began);
    state.publish({{"time/validation_loss_s", took}});
    spdlog::info("step {}: validation loss {:.4f} ({} in {})", state.at.step,
                 sums["val/loss"] / static_cast<double>(seen), counted(seen, "image"),
                 duration_text(took));
  }

  bool chief_only() const override { return false; }

  std::vector<std::string> publishes() const override {
    return {"val/loss", "val/*", "time/validation_loss_s"};
  }

  nlohmann::json save_state() const override { return owed_ ? nlohmann::json(true) : nullptr; }
  void load_state(TrainState&, const nlohmann::json& saved) override { saved.get_to(owed_); }

 private:
  /// Adds up all ranks in order; a signal to one is one to all.
  void add_up(const Cluster& cluster, std::int64_t& seen, std::map<std::string, double>& sums) {
    using Seen = std::tuple<int, std::int64_t, std::map<std::string, double>>;
    const auto all = gather_values(cluster, "validation loss",
                                   Seen(owed_ ? StopSignals::number() : 0, seen, sums));
    seen = 0;
    sums.clear();
    for (const auto& [signal, count, losses] : all) {
      if (signal != 0 && !std::exchange(owed_, true)) StopSignals::note(signal);
      seen += count;
      for (const auto& [name, sum] : losses) sums[name] += sum;
    }
  }

  std::int64_t images_;
  bool owed_ = false;  // the measurement of this step was cut short
};

MILLRACE_REGISTER(register_callback<ValidationLoss>(
    "validation_loss", "measures the losses over the validation split"));

}  // namespace
}  // namespace millrace
