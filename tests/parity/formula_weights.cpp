#include "tests/parity/formula_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "millrace/base/random.h"

namespace millrace::testing {
namespace {

/// Values are offset + scale * u, u in [-1, 1).
struct Spread {
  double offset = 0, scale = 0;
};

Spread spread_of(const Parameter& parameter, const std::string& last_norm) {
  const auto& [name, value, kind, classes] = parameter;
  const auto has = [&, &name = name](const char* part) {
    return name.find(part) != std::string::npos;
  };
  const auto ends = [&, &name = name](const char* part) { return name.ends_with(part); };
  if (has(".bn") || has("downsample.1")) {
    if (ends(".weight")) return has(last_norm.c_str()) ? Spread{0.25, 0.05} : Spread{1, 0.2};
    return ends("running_var") ? Spread{1, 0.3} : Spread{0, 0.1};
  }
  if (ends(".bias")) return {0, 0.05};
  double f = 6;
  if (has(".fpn.")) f = 1;
  if (has(".box_head.") || has("cls_logits") || has("box_predictor.bbox_pred")) f = 3;
  if (has("rpn.head.bbox_pred")) f = 0.5;
  if (has("cls_score")) f = 12;
  if (has("mask_fcn_logits")) f = 4;
  const auto fan_in = has("conv5_mask") ? value.size(0) : value.numel() / value.size(0);
  return {0, std::sqrt(f / static_cast<double>(fan_in))};
}

}  // namespace

void fill_by_formula(const Parameters& parameters, std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  const bool bottlenecks = std::ranges::any_of(
      parameters, [](const auto& p) { return p.name.find(".bn3.") != std::string::npos; });
  for (const auto& parameter : parameters) {
    const auto [offset, scale] = spread_of(parameter, bottlenecks ? ".bn3." : ".bn2.");
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const char c : parameter.name)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    auto flat = at::empty(parameter.value.sizes(), at::kFloat);
    auto* out = flat.data_ptr<float>();
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      const auto bits = mix(hash + seed * kStep + static_cast<std::uint64_t>(i + 1) * kStep);
      const auto u = static_cast<double>(bits >> 40) / 0x1p23 - 1;
      out[i] = static_cast<float>(offset + scale * u);
    }
    at::Tensor(parameter.value).copy_(flat);
  }
}

}  // namespace millrace::testing
