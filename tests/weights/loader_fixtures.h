// Files that torch has written, for readers of weights.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "millrace/weights/safetensors.h"

namespace millrace::testing {

inline const std::filesystem::path kFixtures = "tests/parity/goldens/loader";

inline std::map<std::string, at::Tensor> by_name(const NamedTensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

}  // namespace millrace::testing
