#include "millrace/trainer/optimizer/hyper_parameters.h"

#include <fmt/format.h>

#include <cmath>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/trainer/optimizer/optimizer_options.h"

namespace millrace {

HyperParameters::HyperParameters(const OptimizerOptions& options)
    : all_{{"lr_factor", {1, {.min = 0}}},
           {"optimizer.momentum",
            {options.momentum,
             {.min = 0, .max = options.type == OptimizerType::adamw ? 0.999999 : 1}}},
           {"optimizer.weight_decay", {options.weight_decay, {.min = 0}}},
           {"optimizer.clip_norm", {options.clip_norm, {.min = 0}}}} {}

const HyperParameters::Parameter& HyperParameters::find(std::string_view name) const {
  if (const auto found = all_.find(name); found != all_.end()) return found->second;
  throw ConfigError(fmt::format("'{}' is not a hyper-parameter that can change during training{}",
                                name, suggestion(name, names())));
}

double HyperParameters::at(std::string_view name) const { return find(name).value; }

std::vector<std::string> HyperParameters::all_names() {
  return HyperParameters(OptimizerOptions()).names();
}

std::vector<std::string> HyperParameters::names() const {
  std::vector<std::string> result;
  for (const auto& [name, parameter] : all_) result.push_back(name);
  return result;
}

void HyperParameters::check(std::string_view name, double value) const {
  const auto& limits = find(name).limits;
  if (!std::isfinite(value) || value < limits.min || value > limits.max)
    throw ConfigError(fmt::format("{} = {} is out of range ({})", name, value,
                                  limits.max < Limits{}.max
                                      ? fmt::format("{} .. {}", limits.min, limits.max)
                                      : fmt::format(">= {}", limits.min)));
}

void HyperParameters::set(std::string_view name, double value, const std::string& by) {
  check(name, value);
  const auto [request, first] = requests_.try_emplace(std::string(name), SetRequest{value, by});
  if (!first && request->second.value != value)
    throw Error(
        fmt::format("'{}' and '{}' both set {} at this step, to {} and {}; remove one of them",
                    request->second.by, by, name, request->second.value, value));
}

void HyperParameters::edit(std::string_view name, double value) {
  check(name, value);
  edits_.insert_or_assign(std::string(name), value);
}

void HyperParameters::apply() {
  for (const auto& [name, request] : requests_) all_.find(name)->second.value = request.value;
  for (const auto& [name, value] : edits_) all_.find(name)->second.value = value;
  requests_.clear();
  edits_.clear();
}

std::map<std::string, double> HyperParameters::changed() const {
  std::map<std::string, double> result;
  for (const auto& [name, parameter] : all_)
    if (parameter.value != parameter.initial) result[name] = parameter.value;
  return result;
}

std::vector<double> HyperParameters::values() const {
  std::vector<double> result;
  for (const auto& [name, parameter] : all_) result.push_back(parameter.value);
  return result;
}

void HyperParameters::set_values(const std::vector<double>& values) {
  auto value = values.begin();
  for (auto& [name, parameter] : all_) parameter.value = *value++;
}

OptimizerOptions HyperParameters::applied_to(OptimizerOptions options) const {
  options.momentum = at("optimizer.momentum");
  options.weight_decay = at("optimizer.weight_decay");
  options.clip_norm = at("optimizer.clip_norm");
  return options;
}

void HyperParameters::load(const std::map<std::string, double>& values) {
  for (const auto& [name, value] : values)
    if (const auto found = all_.find(name); found != all_.end()) found->second.value = value;
}

}  // namespace millrace
