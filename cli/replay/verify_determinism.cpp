#include "millrace/cli/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/digest.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/cli/replay/gradient_hooks.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

/// Digests of a step's batches, metrics, gradients and parameters, with their names.
using StepTrace = std::vector<std::pair<std::string, std::uint64_t>>;

std::uint64_t digest_of(const at::Tensor& tensor) {
  const auto bytes = tensor.detach().cpu().contiguous();
  return digest(bytes.const_data_ptr(), bytes.nbytes());
}

/// Appends the digest of each batch. A batch may be uploaded to a device before the step that uses
/// it.
class TracedFlow final : public DataFlow<Batch> {
 public:
  TracedFlow(std::unique_ptr<DataFlow<Batch>> flow, std::deque<std::uint64_t>& batches)
      : flow_(std::move(flow)), batches_(batches) {}

  std::optional<Delivery<Batch>> next() override {
    auto delivery = flow_->next();
    if (delivery) batches_.push_back(digest(delivery->value));
    return delivery;
  }
  bool is_ready(std::chrono::milliseconds most) override { return flow_->is_ready(most); }
  std::int64_t epoch_size() const override { return flow_->epoch_size(); }
  FlowReport report() const override { return flow_->report(); }

 private:
  std::unique_ptr<DataFlow<Batch>> flow_;
  std::deque<std::uint64_t>& batches_;
};

/// Records the trace of each step after it.
class TraceSteps final : public Callback {
 public:
  /// `accumulate`: batches per step.
  TraceSteps(std::deque<std::uint64_t>& batches, std::int64_t accumulate, StepTrace& gradients,
             std::vector<StepTrace>& all)
      : batches_(batches), accumulate_(accumulate), gradients_(gradients), all_(all) {}

  void after_step(const TrainState& state) override {
    StepTrace now;
    for (std::int64_t i = 0; i < accumulate_; ++i) {
      now.emplace_back("the batch", batches_.front());
      batches_.pop_front();
    }
    for (const auto& [name, value, kind] : state.scalars)
      now.emplace_back(fmt::format("the metric '{}'", name), digest(value, 0));
    std::ranges::sort(gradients_);  // the backward pass may produce them in any order
    now.insert(now.end(), gradients_.begin(), gradients_.end());
    gradients_.clear();
    for (const auto& parameter : state.model.parameters())
      now.emplace_back(fmt::format("the parameter '{}'", parameter.name),
                       digest_of(parameter.value));
    all_.push_back(std::move(now));
  }

 private:
  std::deque<std::uint64_t>& batches_;
  const std::int64_t accumulate_;
  StepTrace& gradients_;
  std::vector<StepTrace>& all_;
};

/// Trains `steps` steps and returns their traces; nullopt after a signal.
std::optional<std::vector<StepTrace>> trace(const Session& session, const TrainData& data,
                                            std::int64_t steps) {
  const auto detector = session.make_initial_detector(data.classes);
  std::vector<StepTrace> all;
  StepTrace gradients;
  std::deque<std::uint64_t> batches;
  const GradientHooks hooks(detector->parameters(), [&](const auto& name, const auto& gradient) {
    gradients.emplace_back(fmt::format("the gradient of '{}'", name), digest_of(gradient));
  });
  CallbackList callbacks;
  callbacks.add("trace", std::make_unique<TraceSteps>(
                             batches, session.recipe().optimizer.accumulate, gradients, all));
  auto plan = session.plan(*detector, data, [&](std::unique_ptr<DataFlow<Batch>> flow) {
    return std::make_unique<TracedFlow>(std::move(flow), batches);
  });
  plan.train.max_steps = steps;
  if (Trainer(std::move(plan), std::move(callbacks)).run().signalled) return std::nullopt;
  return all;
}

}  // namespace

int verify_determinism(const Recipe& recipe, std::int64_t steps) {
  const Session session(recipe);
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto first = trace(session, data, steps);
  if (!first) return kStoppedEarly;
  const auto second = trace(session, data, steps);
  if (!second) return kStoppedEarly;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < first->size(); ++i) {
    const auto& expected = first->at(i);
    const auto [a, b] = std::ranges::mismatch(expected, second->at(i));
    if (a != expected.end() || b != second->at(i).end()) {
      print_formatted("not equal: first difference in {} of step {}\n",
                      a == expected.end() ? b->first : a->first, i + 1);
      suggest_next("docs/determinism.md lists what changes results");
      return kFailed;
    }
    for (const auto& [what, value] : expected) sum = digest(value, sum);
  }
  print_formatted("equal: {} twice, digest {}\n", counted(first->size(), "step"), hex(sum));
  suggest_next("run the same command on another machine; equal results have the same digest");
  return kDone;
}

}  // namespace millrace::cli
