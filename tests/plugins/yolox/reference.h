// The network, images and objects of reference.py.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/plugins/yolox/yolox.h"

namespace millrace::yolox {

constexpr std::int64_t kHeight = 64, kWidth = 96;

/// Returns double values in [-1, 1] that depend only on the tensor's name.
inline at::Tensor formula(const std::string& name, at::IntArrayRef shape) {
  std::int64_t phase = 0, count = 1;
  for (std::size_t i = 0; i < name.size(); ++i)
    phase += static_cast<std::int64_t>(i + 1) * static_cast<unsigned char>(name[i]);
  for (const auto side : shape) count *= side;
  const auto i = at::arange(count, at::kDouble);
  return at::sin(i * 0.37 * i + static_cast<double>(phase % 1009)).view(shape);
}

inline at::Tensor value_of(const std::string& name, at::IntArrayRef shape) {
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  const auto wave = formula(name, shape);
  if (shape.size() == 4)
    return wave * (has("_preds.") ? 0.05 : 1) *
           std::sqrt(3.0 / static_cast<double>(shape[1] * shape[2] * shape[3]));
  if (has("running_var") && has(".stem.")) return 8000 + 1000 * wave;
  if (has("running_var") || has(".bn.weight")) return 1 + 0.2 * wave;
  if (has("cls_preds") || has("obj_preds")) return wave - 1;
  return 0.2 * wave;
}

inline YoloxOptions options_of(const std::string& model) {
  YoloxOptions options;
  if (model == "depthwise")
    options.width = 0.25, options.depthwise = true;
  else
    options.width = 0.125;
  return options;
}

inline void set_by_formula(const Yolox& model) {
  const at::NoGradGuard no_grad;
  for (const auto& parameter : model.parameters())
    parameter.value.copy_(value_of(parameter.name, parameter.value.sizes()));
}

/// Returns the model "plain" or "depthwise", with the classes a, b and c.
inline std::unique_ptr<Yolox> by_formula(const std::string& model,
                                         const YoloxOptions& changes = {}) {
  auto options = options_of(model);
  options.l1_from = changes.l1_from;
  options.detections_per_img = changes.detections_per_img;
  options.boxes = changes.boxes;
  auto made = std::make_unique<Yolox>(options, ModelContext{.classes = {"a", "b", "c"}});
  set_by_formula(*made);
  return made;
}

inline at::Tensor images() {
  const auto i = at::arange(2 * 3 * kHeight * kWidth, at::kDouble);
  const auto levels =
      at::floor(127.5 + 127.4 * at::sin(0.0013 * i) * at::cos(0.37 * i * i)).to(at::kFloat);
  return levels.view({2, kHeight, kWidth, 3}).permute({0, 3, 1, 2});
}

inline std::vector<Truth> truths() {
  const auto first = at::tensor(
      {5.3, 7.1, 41.7, 38.9, 33.2, 11.4, 81.6, 52.8, 70.1, 40.3, 79.7, 49.2}, at::kFloat);
  const auto second = at::tensor({12.6, 3.7, 90.4, 60.2}, at::kFloat);
  return {{.boxes = first.view({3, 4}), .labels = at::tensor({0, 2, 1}, at::kLong)},
          {.boxes = second.view({1, 4}), .labels = at::tensor({1}, at::kLong)}};
}

}  // namespace millrace::yolox
