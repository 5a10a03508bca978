#include "millrace/cli/replay/replay.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/cli/command.h"
#include "millrace/cli/replay/gradient_hooks.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/restore.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/failed_steps.h"
#include "millrace/trainer/optimizer/hyper_parameters.h"
#include "millrace/trainer/run/session.h"
#include "millrace/trainer/training_step.h"

namespace millrace::cli {
namespace {

struct BadOperator {
  std::string name;     // "aten::div"
  std::string inputs;   // shapes of its input tensors: "(2, 256, 7, 7), (1)"
  std::string outputs;  // shapes of its results; empty if an input was already non-finite
  std::string node;     // backward node that ran it: "DivBackward0"; empty = forward pass
  std::vector<std::string> weights;  // the model's weights among its inputs, also converted ones
  std::vector<std::string> bad_weights;  // those of `weights` that were non-finite at the start
};

/// libtorch's own allocator with zeroed memory.
class ZeroedMemory final : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) override {
    auto memory = below().allocate(bytes);
    if (bytes > 0) std::memset(memory.mutable_get(), 0, bytes);
    return memory;
  }
  at::DeleterFnPtr raw_deleter() const override { return below().raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static at::Allocator& below() { return *c10::GetDefaultCPUAllocator(); }
};

ZeroedMemory zeroed_memory;  // static: its tensors may outlive a watch

struct Watching {
  std::vector<std::string> nodes;              // nodes of the backward pass that are running
  std::map<const void*, std::string> weights;  // names by memory address, also of converted weights
  std::set<std::string> bad_weights;
  at::Allocator* memory_before = nullptr;
  std::optional<BadOperator> first;
};

thread_local Watching watching;

/// The inputs of an operator call.
struct Given final : at::ObserverContext {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> weights;  // names of the inputs that are weights
  bool weights_alone = false;        // all inputs are weights
  bool bad = false;                  // an input is non-finite, bad weights excepted
};

std::vector<at::Tensor> tensors_of(const auto& values) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) tensors.push_back(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  }
  std::erase_if(tensors, [](const auto& tensor) { return !tensor.defined(); });
  return tensors;
}

std::string sizes_text(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> shapes;
  for (const auto& tensor : tensors)
    shapes.push_back(fmt::format("({})", fmt::join(tensor.sizes().vec(), ", ")));
  return fmt::format("{}", fmt::join(shapes, ", "));
}

bool is_bad(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.is_meta() || tensor.numel() == 0) return false;
  return !at::isfinite(tensor.detach()).all().item<bool>();
}

/// Returns the address of the tensor's storage, which all its views share.
const void* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().data() : nullptr;
}

/// Returns the name of the weight whose values the tensor has; empty if it is not a weight.
std::string weight_in(const at::Tensor& tensor) {
  const auto found = watching.weights.find(memory_of(tensor));
  return found == watching.weights.end() ? "" : found->second;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
  const c10::NoGradGuard no_graph;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION)
    watching.nodes.emplace_back(function.name());
  auto given = std::make_unique<Given>();
  if (watching.first) return given;
  given->tensors = tensors_of(function.inputs());
  for (const auto& tensor : given->tensors) {
    auto weight = weight_in(tensor);
    given->bad = given->bad || (!watching.bad_weights.contains(weight) && is_bad(tensor));
    if (!weight.empty()) given->weights.push_back(std::move(weight));
  }
  given->weights_alone = !given->tensors.empty() && given->weights.size() == given->tensors.size();
  return given;
}

/// Records results computed from weights alone as converted forms of that weight; other results
/// that got a weight's memory are no longer that weight.
void follow_weights(const Given& given, const std::vector<at::Tensor>& results) {
  for (const auto& result : results) {
    const auto* memory = memory_of(result);
    if (given.weights_alone)
      watching.weights.try_emplace(memory, given.weights.front());
    else if (std::ranges::none_of(given.tensors,
                                  [&](const auto& tensor) { return memory_of(tensor) == memory; }))
      watching.weights.erase(memory);
  }
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
  const c10::NoGradGuard no_graph;
  const auto node = watching.nodes.empty() ? "" : watching.nodes.back();
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION && !watching.nodes.empty())
    watching.nodes.pop_back();
  if (!context || watching.first) return;
  const auto& given = static_cast<const Given&>(*context);
  const auto results = tensors_of(function.outputs());
  // Some operators write into their inputs and declare no outputs.
  const bool makes_bad =
      std::ranges::any_of(results, is_bad) ||
      (!given.bad && std::ranges::any_of(given.tensors, [](const auto& tensor) {
        return !watching.bad_weights.contains(weight_in(tensor)) && is_bad(tensor);
      }));
  if (!given.bad && !makes_bad) return follow_weights(given, results);
  BadOperator bad{function.name(), sizes_text(given.tensors), "", node, given.weights, {}};
  if (!given.bad) bad.outputs = sizes_text(results.empty() ? given.tensors : results);
  for (const auto& weight : given.weights)
    if (watching.bad_weights.contains(weight)) bad.bad_weights.push_back(weight);
  watching.first = std::move(bad);
}

/// Watches every operator that its thread runs, backward passes included, during this object's
/// lifetime. Only one watch may exist at a time. It checks all values, so it is slow. Meanwhile the
/// memory of new tensors is zeroed, so that values not yet written are finite.
class BadOperatorWatch {
 public:
  explicit BadOperatorWatch(const NamedTensors& model);
  BadOperatorWatch(const BadOperatorWatch&) = delete;
  ~BadOperatorWatch();

  /// Returns the first operator whose results were not finite although its inputs were; weights
  /// that were not finite at the start are ignored as inputs. If no operator produced the first
  /// non-finite value, returns the operator that received it.
  std::optional<BadOperator> first() const;

 private:
  std::uint64_t handle_;
};

BadOperatorWatch::BadOperatorWatch(const NamedTensors& model) {
  watching = {};
  for (const auto& [name, value] : model) {
    watching.weights[memory_of(value)] = name;
    if (is_bad(value)) watching.bad_weights.insert(name);
  }
  watching.memory_before = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&zeroed_memory);
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin, end).needsInputs(true).needsOutputs(true));
}

BadOperatorWatch::~BadOperatorWatch() {
  at::removeCallback(handle_);
  c10::SetCPUAllocator(watching.memory_before);
}

std::optional<BadOperator> BadOperatorWatch::first() const { return watching.first; }

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
