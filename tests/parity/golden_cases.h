// Calls of single torchvision operators, recorded in tests/parity/goldens/ops. Their README is in
// the maintainers' data set.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "millrace/models/weights/safetensors.h"

namespace millrace::testing {

/// Relative difference that is explained by float32 rounding in a different order of summation.
inline constexpr double kRounding = 1e-6;

/// Returns a copy that requires a gradient.
inline at::Tensor leaf(const at::Tensor& values) { return values.clone().requires_grad_(); }

/// One operator call: its parameters, and its tensors by name.
struct GoldenCase {
  std::string name;
  nlohmann::json parameters;
  std::map<std::string, at::Tensor> tensors;

  const at::Tensor& operator[](const std::string& tensor) const { return tensors.at(tensor); }
};

/// Returns the cases of goldens/ops/<file>.safetensors whose names begin with `prefix`.
inline std::vector<GoldenCase> golden_cases(const std::string& file,
                                            const std::string& prefix = "") {
  std::map<std::string, std::string> metadata;
  const auto tensors =
      read_safetensors("tests/parity/goldens/ops/" + file + ".safetensors", &metadata);
  std::vector<GoldenCase> cases;
  const auto parameters = nlohmann::json::parse(metadata.at("cases"));
  for (const auto& [name, value] : parameters.items()) {
    if (!name.starts_with(prefix)) continue;
    cases.push_back({name, value, {}});
    for (const auto& [tensor, values] : tensors)
      if (tensor.starts_with(name + "."))
        cases.back().tensors[tensor.substr(name.size() + 1)] = values;
  }
  return cases;
}

/// Calls `work` with each case that golden_cases() returns.
template <class Work>
void each_case(const std::string& file, const std::string& prefix, Work work) {
  for (const auto& golden : golden_cases(file, prefix)) {
    SCOPED_TRACE(golden.name);
    work(golden);
  }
}

}  // namespace millrace::testing
