// The gradients of a model as the backward pass computes them: a training step clears them before
// it returns.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/weights/parameters.h"

namespace millrace::cli {

/// While it lives, calls `see` with the name and gradient of each parameter. The parameters must
/// outlive it.
class GradientHooks {
 public:
  GradientHooks(const Parameters& parameters,
                const std::function<void(const std::string& name, const at::Tensor&)>& see) {
    for (const auto& parameter : parameters) {
      if (!parameter.trainable()) continue;
      auto value = parameter.value;
      const auto handle = value.register_hook(
          [see, name = parameter.name](const at::Tensor& gradient) { see(name, gradient); });
      hooks_.emplace_back(value, handle);
    }
  }
  GradientHooks(const GradientHooks&) = delete;
  ~GradientHooks() {
    for (const auto& [value, handle] : hooks_) value.remove_hook(handle);
  }

 private:
  std::vector<std::pair<at::Tensor, unsigned>> hooks_;
};

}  // namespace millrace::cli
