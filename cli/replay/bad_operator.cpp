#include "millrace/cli/replay/bad_operator.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace millrace::cli {
namespace {

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

std::string shapes_of(const std::vector<at::Tensor>& tensors) {
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
  BadOperator bad{function.name(), shapes_of(given.tensors), "", node, given.weights, {}};
  if (!given.bad) bad.outputs = shapes_of(results.empty() ? given.tensors : results);
  for (const auto& weight : given.weights)
    if (watching.bad_weights.contains(weight)) bad.bad_weights.push_back(weight);
  watching.first = std::move(bad);
}

}  // namespace

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

}  // namespace millrace::cli
