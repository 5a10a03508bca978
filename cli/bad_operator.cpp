#include "cli/bad_operator.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/isfinite.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::cli {
namespace {

struct Watching {
  std::vector<std::string> nodes;   // of the backward pass that are open
  std::set<const void*> known;      // to be not finite
  std::set<const void*> unwritten;  // memory whose content nobody has chosen yet
  std::optional<BadOperator> first;
};

thread_local Watching watching;

/// What an operator was given.
struct Given final : at::ObserverContext {
  std::string shapes;
  std::vector<const void*> bad;  // memory of tensors that were not finite
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

/// Operators that give memory as it is.
bool leaves_unwritten(std::string_view name) {
  return name.find("empty") != std::string_view::npos ||
         name.find("resize") != std::string_view::npos;
}

std::string node() { return watching.nodes.empty() ? "" : watching.nodes.back(); }

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
  const c10::NoGradGuard no_graph;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION)
    watching.nodes.emplace_back(function.name());
  auto given = std::make_unique<Given>();
  if (watching.first) return given;
  const auto inputs = tensors_of(function.inputs());
  given->shapes = shapes_of(inputs);
  for (const auto& input : inputs)
    if (!watching.known.contains(input.const_data_ptr()) && is_bad(input))
      given->bad.push_back(input.const_data_ptr());
  return given;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  const at::RecordFunctionGuard unseen(/*is_enabled=*/false);
  const c10::NoGradGuard no_graph;
  const auto leave = [&] {
    if (function.scope() == at::RecordScope::BACKWARD_FUNCTION && !watching.nodes.empty())
      watching.nodes.pop_back();
  };
  if (!context || watching.first) return leave();
  const auto& given = static_cast<const Given&>(*context);
  const auto outputs = tensors_of(function.outputs());
  const std::string_view name = function.name();
  const bool unwritten = leaves_unwritten(name);
  // What was to be overwritten was not given.
  const bool was_given_bad = std::ranges::any_of(given.bad, [&](const void* memory) {
    return !watching.unwritten.contains(memory) ||
           std::ranges::none_of(outputs,
                                [&](const auto& out) { return out.const_data_ptr() == memory; });
  });
  for (const auto& output : outputs) {
    if (unwritten)
      watching.unwritten.insert(output.const_data_ptr());
    else
      watching.unwritten.erase(output.const_data_ptr());
  }
  if (was_given_bad)
    watching.first = BadOperator{std::string(name), given.shapes, "", node()};
  else if (!unwritten && std::ranges::any_of(outputs, is_bad))
    watching.first = BadOperator{std::string(name), given.shapes, shapes_of(outputs), node()};
  leave();
}

}  // namespace

BadOperatorWatch::BadOperatorWatch(std::set<const void*> known)
    : handle_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(begin, end).needsInputs(true).needsOutputs(true))) {
  watching = {};
  watching.known = std::move(known);
}

BadOperatorWatch::~BadOperatorWatch() { at::removeCallback(handle_); }

std::optional<BadOperator> BadOperatorWatch::first() const { return watching.first; }

}  // namespace millrace::cli
