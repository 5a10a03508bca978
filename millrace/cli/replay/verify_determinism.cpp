#include "millrace/cli/replay/verify_determinism.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
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

/// The digests of all that a step had to do with, by name.
using StepTrace = std::vector<std::pair<std::string, std::uint64_t>>;

std::uint64_t digest_of(const at::Tensor& tensor) {
  const auto bytes = tensor.detach().cpu().contiguous();
  return digest(bytes.const_data_ptr(), bytes.nbytes());
}

/// A flow that notes the digest of each batch.
class TracedFlow final : public DataFlow<Batch> {
 public:
  TracedFlow(std::unique_ptr<DataFlow<Batch>> flow, StepTrace& now)
      : flow_(std::move(flow)), now_(now) {}

  std::optional<Delivery<Batch>> next() override {
    auto delivery = flow_->next();
    if (delivery) now_.emplace_back("the batch", digest(delivery->value));
    return delivery;
  }
  bool is_ready(std::chrono::milliseconds most) override { return flow_->is_ready(most); }
  std::int64_t epoch_size() const override { return flow_->epoch_size(); }
  FlowReport report() const override { return flow_->report(); }

 private:
  std::unique_ptr<DataFlow<Batch>> flow_;
  StepTrace& now_;
};

/// Completes the trace of a step when it is over.
class TraceSteps final : public Callback {
 public:
  TraceSteps(StepTrace& now, StepTrace& gradients, std::vector<StepTrace>& all)
      : now_(now), gradients_(gradients), all_(all) {}

  void after_step(TrainState& state) override {
    for (const auto& [name, value, kind] : state.scalars)
      now_.emplace_back(fmt::format("the scalar '{}'", name), digest(value, 0));
    std::ranges::sort(gradients_);  // as the backward pass comes to them
    now_.insert(now_.end(), gradients_.begin(), gradients_.end());
    gradients_.clear();
    for (const auto& parameter : state.model.parameters())
      now_.emplace_back(fmt::format("the parameter '{}'", parameter.name),
                        digest_of(parameter.value));
    all_.push_back(std::exchange(now_, {}));
  }

 private:
  StepTrace &now_, &gradients_;
  std::vector<StepTrace>& all_;
};

struct Trace {
  std::vector<StepTrace> steps;
  bool signalled = false;
};

Trace trace(const Session& session, const TrainData& data, std::int64_t steps) {
  const auto detector = session.make_initial_detector(data.classes);
  Trace result;
  StepTrace now, gradients;
  const GradientHooks hooks(detector->parameters(), [&](const auto& name, const auto& gradient) {
    gradients.emplace_back(fmt::format("the gradient of '{}'", name), digest_of(gradient));
  });
  CallbackList callbacks;
  callbacks.add("trace", std::make_unique<TraceSteps>(now, gradients, result.steps));
  auto plan = session.plan(*detector, data, [&](std::unique_ptr<DataFlow<Batch>> flow) {
    return std::make_unique<TracedFlow>(std::move(flow), now);
  });
  plan.train.max_steps = steps;
  result.signalled = Trainer(std::move(plan), std::move(callbacks)).run().signalled;
  return result;
}

/// The name in which two traces of a step differ first; empty: in none.
std::string first_difference(const StepTrace& first, const StepTrace& second) {
  const auto [a, b] = std::ranges::mismatch(first, second);
  if (a == first.end() && b == second.end()) return "";
  return a == first.end() ? b->first : a->first;
}

}  // namespace

int verify_determinism(const Recipe& recipe, std::int64_t steps) {
  const Session session(recipe);
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto first = trace(session, data, steps);
  const auto second = first.signalled ? Trace() : trace(session, data, steps);
  if (first.signalled || second.signalled) return kStoppedEarly;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < first.steps.size(); ++i) {
    const auto name = first_difference(first.steps[i], second.steps.at(i));
    if (!name.empty())
      return fmt::print("not equal: {} differs in step {}, and nothing before it\n", name, i + 1),
             kFailed;
    for (const auto& [what, value] : first.steps[i]) sum = digest(value, sum);
  }
  fmt::print("equal: {} twice, digest {}\n", counted(std::ssize(first.steps), "step"), hex(sum));
  return kDone;
}

}  // namespace millrace::cli
