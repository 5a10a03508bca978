// [callbacks.validation_loss]: publishes the losses over the validation split as val/loss and
// val/NAME.
#include <ATen/core/Tensor.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/cluster/gather_values.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct ValidationLossOptions {
  std::string every = "1 epoch";
  std::int64_t images = 0;

  void describe(Options& o) {
    o.add("every", every, "interval; also after the last step").affects(Affects::evaluation);
    o.add("images", images, "number of images, from the first; 0 = all",
          {.min = 0, .unit = "images"})
        .affects(Affects::evaluation);
  }
};

using BatchLosses = std::tuple<std::int64_t, Scalars>;  // number of images, mean losses

/// Computes the means of the detector's losses over images; each rank measures its share. Random
/// numbers are the same every time, since they depend on the batch's index among those of all
/// ranks. If a stop signal arrives meanwhile, training ends there, and a resumed run measures
/// first.
class ValidationLoss final : public Callback,
                             public PublishesMetrics,
                             public NeedsValidation,
                             public SavesState {
 public:
  using Options = ValidationLossOptions;

  ValidationLoss(const Options& options, std::string name)
      : name_(std::move(name)), images_(options.images) {}

  void before_train(const TrainState& state) override {
    if (!state.validation)
      log_warning("no validation split (data.val): callback '{}' does nothing", name_);
    if (interrupted_) trigger(state);
  }

  void trigger(const TrainState& state) override {
    if (!state.validation) return;
    const c10::NoGradGuard no_graph;
    const auto began = Clock::now();
    std::vector<BatchLosses> own;
    std::int64_t seen = 0;
    const auto share = share_of(*state.cluster);
    // Number of images of this rank.
    const auto wanted = (images_ + share.ranks - 1 - share.rank) / share.ranks;
    const auto measure = [&](const Batch& batch) {
      const auto number = std::ssize(own) * share.ranks + share.rank;
      const auto losses = state.model.losses(batch, {.step = number, .without_training = true});
      std::vector<at::Tensor> values;
      for (const auto& [name, loss] : losses) values.push_back(loss.reshape({}));
      DeviceNumbers numbers(at::stack(values));
      auto next = numbers.get().begin();
      auto& [count, of_batch] = own.emplace_back();
      count = std::ssize(batch.images);
      for (const auto& [name, loss] : losses) of_batch.emplace_back(name, *next++);
      seen += count;
      return images_ == 0 || seen < wanted;
    };
    interrupted_ = (images_ == 0 || wanted > 0) &&
                   !go_through(state.validation->start(share), state.pass_watch(), measure);
    const auto all = of_all_ranks(*state.cluster, own);
    if (interrupted_) {
      state.stop(StopSignals::received());
      return state.save_checkpoint();
    }
    std::map<std::string, double> sums;  // losses summed over images
    seen = 0;
    for (const auto& [count, losses] : all) {
      seen += count;
      for (const auto& [name, loss] : losses) {
        const auto value = loss * static_cast<double>(count);
        sums["val/" + name] += value;
        sums["val/loss"] += value;
      }
    }
    if (seen == 0) return;
    Scalars means;
    for (const auto& [name, sum] : sums) means.emplace_back(name, sum / static_cast<double>(seen));
    state.publish(means);
    const auto took = seconds_since(began);
    state.publish({{"time/validation_loss_s", took}});
    log_info("step {}: validation loss {:.4f} ({} in {})", state.at.step,
             sums["val/loss"] / static_cast<double>(seen), counted(seen, "image"),
             duration_text(took));
  }

  bool chief_only() const override { return false; }

  std::vector<std::string> publishes() const override {
    return {"val/loss", "val/*", "time/validation_loss_s"};
  }

  nlohmann::json save_state() const override {
    return interrupted_ ? nlohmann::json(true) : nullptr;
  }
  void load_state(const TrainState&, const nlohmann::json& saved) override {
    saved.get_to(interrupted_);
  }

 private:
  /// Returns the batches of all ranks in the order of one process. A stop signal to one rank
  /// applies to all.
  std::vector<BatchLosses> of_all_ranks(const Cluster& cluster,
                                        const std::vector<BatchLosses>& own) {
    using Seen = std::tuple<int, std::vector<BatchLosses>>;
    const auto all = gather_values(cluster, "validation loss",
                                   Seen(interrupted_ ? StopSignals::number() : 0, own));
    std::vector<BatchLosses> batches;
    std::size_t longest = 0;
    for (const auto& [signal, theirs] : all) {
      if (signal != 0 && !std::exchange(interrupted_, true)) StopSignals::note(signal);
      longest = std::max(longest, theirs.size());
    }
    for (std::size_t i = 0; i < longest; ++i)
      for (const auto& [signal, theirs] : all)
        if (i < theirs.size()) batches.push_back(theirs[i]);
    return batches;
  }

  std::string name_;
  std::int64_t images_;
  bool interrupted_ = false;  // true if the measurement of this step was interrupted
};

MILLRACE_REGISTER(register_callback<ValidationLoss>("validation_loss",
                                                    "measures the losses on the validation split"));

}  // namespace
}  // namespace millrace
