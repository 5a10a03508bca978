#include "millrace/models/weights/parameters.h"

#include "millrace/base/errors.h"

namespace millrace {

at::Tensor Parameters::add(std::string name, at::Tensor value, ParameterKind kind) {
  if (find(name)) throw Error("parameter '" + name + "' is declared twice");
  value.set_requires_grad(kind != ParameterKind::buffer);
  all_.push_back({std::move(name), value, kind});
  return value;
}

const Parameter* Parameters::find(std::string_view name) const {
  for (const auto& parameter : all_)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

void Parameters::freeze(std::string_view prefix) {
  for (auto& parameter : all_)
    if (parameter.name.starts_with(prefix)) parameter.value.set_requires_grad(false);
}

void Parameters::set_classes(std::string_view prefix, ClassAxis axis) {
  for (auto& parameter : all_)
    if (parameter.name.starts_with(prefix)) parameter.classes = axis;
}

std::int64_t Parameters::trainable_count() const {
  std::int64_t total = 0;
  for (const auto& parameter : all_)
    if (parameter.trainable()) total += parameter.value.numel();
  return total;
}

std::int64_t Parameters::count() const {
  std::int64_t total = 0;
  for (const auto& parameter : all_) total += parameter.value.numel();
  return total;
}

}  // namespace millrace
