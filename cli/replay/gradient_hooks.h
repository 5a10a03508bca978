// Hooks that see a model's gradients as the backward pass computes them. They are needed because a
// training step clears the gradients before it returns.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "millrace/models/weights/parameters.h"

namespace millrace::cli {

/// Calls `see` with the name and gradient of each parameter during this object's lifetime; with
/// train.micro_batch, once for each micro-batch. Calls do not overlap, but may be made from any
/// thread and in any order. Must be created before the training step, whose own hooks take the
/// gradients away. The parameters must outlive this object.
class GradientHooks {
 public:
  using See = std::function<void(const std::string& name, const at::Tensor&)>;

  GradientHooks(const Parameters& parameters, See see) : see_(std::move(see)) {
    for (const auto& parameter : parameters) {
      if (!parameter.trainable()) continue;
      auto hook = std::make_unique<Hook>(*this, parameter.name);
      hooks_.emplace_back(parameter.value, hook.get());
      // add_hook is not used, because it replaces other hooks.
      torch::autograd::impl::hooks(parameter.value).push_back(std::move(hook));
    }
  }
  GradientHooks(const GradientHooks&) = delete;
  ~GradientHooks() {
    for (const auto& [value, own] : hooks_)
      std::erase_if(torch::autograd::impl::hooks(value),
                    [own = own](const auto& hook) { return hook.get() == own; });
  }

 private:
  struct Hook final : torch::autograd::FunctionPreHook {
    Hook(GradientHooks& hooks, std::string name) : hooks_(hooks), name_(std::move(name)) {}
    torch::autograd::variable_list operator()(
        const torch::autograd::variable_list& gradients) override {
      if (gradients[0].defined()) {
        const std::scoped_lock lock(hooks_.mutex_);
        hooks_.see_(name_, gradients[0]);
      }
      return gradients;
    }

   private:
    GradientHooks& hooks_;
    const std::string name_;
  };

  See see_;
  std::mutex mutex_;
  std::vector<std::pair<at::Tensor, const Hook*>> hooks_;
};

}  // namespace millrace::cli
