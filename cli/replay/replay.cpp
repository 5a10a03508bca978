#include "millrace/cli/replay/replay.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/cli/command.h"
#include "millrace/cli/replay/bad_operator.h"
#include "millrace/cli/replay/gradient_hooks.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/failed_steps.h"
#include "millrace/trainer/optimizer/hyper_parameters.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/training_step.h"

namespace millrace::cli {
namespace {

/// Adds a description of the tensor to `bad` if it is not finite.
void add_if_not_finite(const std::string& name, const at::Tensor& tensor,
                       std::vector<std::string>& bad) {
  if (!tensor.is_floating_point()) return;
  const auto finite = at::isfinite(tensor.detach()).sum().item<std::int64_t>();
  if (finite < tensor.numel())
    bad.push_back(
        fmt::format("'{}', {} of its {} values", name, tensor.numel() - finite, tensor.numel()));
}

void print_bad(const char* kind, const std::vector<std::string>& bad) {
  if (!bad.empty())
    print_formatted("{} {} not finite; the first is {}\n", bad.size(), kind, bad.front());
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Prints the metrics of the repeated step, with the recorded value if it differs. Returns true if
/// all are equal.
bool print_metrics(const StepEnd& end, const StepRecord& record) {
  bool same = end.scalars.size() == record.scalars.size() && end.rejected == record.rejected;
  for (std::size_t i = 0; i < end.scalars.size(); ++i) {
    const auto& [name, value, kind] = end.scalars[i];
    const bool known = i < record.scalars.size() && record.scalars[i].name == name;
    const bool equal = known && same_bits(value, record.scalars[i].value);
    same &= equal;
    print_formatted("  {:<24} {:<24}{}\n", name, value,
                    equal   ? ""
                    : known ? fmt::format("recorded: {}", record.scalars[i].value)
                            : "not recorded");
  }
  return same;
}

void print_operator(const std::optional<BadOperator>& bad) {
  if (!bad) return print_formatted("no operator returned a non-finite value\n");
  const auto where = bad->node.empty() ? "in the forward pass"
                                       : fmt::format("in the backward pass, {}", bad->node);
  const auto what = fmt::format("{} {}", bad->name, where);
  const auto names =
      bad->weights.empty() ? "" : fmt::format(" with '{}'", fmt::join(bad->weights, "', '"));
  if (bad->outputs.empty())
    print_formatted(
        "the first non-finite value was not computed by an operator; it is an input of {}: {}{}\n",
        what, bad->inputs, names);
  else if (bad->bad_weights.empty())
    print_formatted(
        "the first operator that computed a non-finite value from finite inputs is {}: {} -> "
        "{}{}\n",
        what, bad->inputs, bad->outputs, names);
  else
    print_formatted("the first operator with a non-finite weight as input is {}: {} -> {}{}\n",
                    what, bad->inputs, bad->outputs, names);
}

}  // namespace

int replay(const Recipe& recipe, const std::filesystem::path& folder) {
  const Session session(recipe);
  const auto record = read_step_record(folder);
  const auto model = session.make_detector(record.classes);
  restore(*model, record.model);
  std::vector<std::string> weights, gradients;  // non-finite ones
  for (const auto& [name, value] : named_values(*model)) add_if_not_finite(name, value, weights);

  HyperParameters hyper(recipe.optimizer);
  hyper.load(record.hyper);
  std::set<std::string> seen;  // reported once, although each micro-batch has a gradient
  const GradientHooks hooks(model->parameters(), [&](const auto& name, const auto& gradient) {
    const auto before = gradients.size();
    if (!seen.contains(name)) add_if_not_finite(name, gradient, gradients);
    if (gradients.size() > before) seen.insert(name);
  });
  TrainingStep step(*model, recipe.train, hyper.applied_to(recipe.optimizer));
  auto scale = record.loss_scale;
  const BadOperatorWatch watch(named_values(*model));
  Metrics metrics;
  auto info = record.info;
  if (record.with_metrics) info.metrics = &metrics;
  const auto end = step(record.batches, info, record.lr, scale);

  print_formatted("step {}: {}\n", record.info.step + 1,
                  end.rejected.empty() ? "all values are finite" : end.rejected);
  const bool same = print_metrics(end, record);
  print_bad("weights were", weights);
  print_bad("gradients are", gradients);
  print_operator(watch.first());
  print_formatted("{}\n", same ? "reproduced: all metrics equal the recorded ones bit for bit"
                               : fmt::format("not reproduced; recorded: {}", record.rejected));
  suggest_next("docs/checkpoints.md describes how to examine a diverged step");
  return same ? kDone : kFailed;
}

}  // namespace millrace::cli
