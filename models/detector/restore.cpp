#include "millrace/models/detector/restore.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

#include "millrace/base/errors.h"

namespace millrace {

void check_fits(const NamedTensors& target, const NamedTensors& saved, const std::string& what) {
  std::unordered_map<std::string, at::Tensor> left(saved.begin(), saved.end());
  for (const auto& [name, value] : target) {
    const auto found = left.find(name);
    if (found == left.end())
      throw Error(fmt::format("{}: '{}' not found in the checkpoint", what, name));
    if (found->second.sizes() != value.sizes())
      throw Error(fmt::format("{}: '{}' has shape {} in the checkpoint, {} here", what, name,
                              found->second.sizes().vec(), value.sizes().vec()));
    left.erase(found);
  }
  if (!left.empty())
    throw Error(fmt::format("{}: the checkpoint contains '{}', which does not exist here", what,
                            left.begin()->first));
}

void restore(const NamedTensors& target, const NamedTensors& saved, const std::string& what) {
  check_fits(target, saved, what);
  const std::unordered_map<std::string, at::Tensor> values(saved.begin(), saved.end());
  for (const auto& [name, value] : target) value.detach().copy_(values.at(name));
}

void restore(Detector& model, const NamedTensors& saved) {
  restore(named_values(model), saved, "the model");
  model.parameters_changed();
}

NamedTensors named_values(const Detector& model) {
  NamedTensors tensors;
  for (const auto& parameter : model.parameters())
    tensors.emplace_back(parameter.name, parameter.value.detach());
  return tensors;
}

}  // namespace millrace
