#include "millrace/models/activation_bytes.h"

#include <cmath>
#include <string_view>

namespace millrace {
namespace {

/// Outputs of convolution, normalisation and ReLU that are kept, and the gradients that are alive
/// with them. Fitted to the peaks of `trainer bench model`.
constexpr double kKeptPerLayer = 1.5;

/// The digit after `word`, which the name contains.
int digit_after(std::string_view name, std::string_view word) {
  return name[name.find(word) + word.size()] - '0';
}

/// How many places a convolution's output has.
double places(std::string_view name, double pixels, int finest, const RegionLoad& regions) {
  const auto at_stride = [&](int log2) { return pixels / std::pow(4.0, log2); };
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (has("body.layer")) return at_stride(digit_after(name, "body.layer") + 1);
  if (has("body.")) return at_stride(1);
  if (has("extra_blocks.")) return at_stride(6);
  if (has("_blocks.")) return at_stride(digit_after(name, "_blocks.") + finest);
  if (has("mask_predictor")) return 4 * regions.masks * regions.mask_cells;
  if (has("mask_head")) return regions.masks * regions.mask_cells;
  if (has("box_head")) return regions.boxes * regions.box_cells;
  return at_stride(finest) * 4 / 3;  // a head on every level
}

}  // namespace

double activation_bytes(const Parameters& parameters, double pixels, int finest,
                        const RegionLoad& regions) {
  double values = 0, pyramid_channels = 0;
  for (const auto& parameter : parameters) {
    if (parameter.kind != ParameterKind::weight || !parameter.trainable()) continue;
    const auto out = static_cast<double>(parameter.value.size(0));
    if (parameter.value.dim() == 4)
      values += out * places(parameter.name, pixels, finest, regions);
    else
      values += out * regions.boxes;
    if (parameter.name.find("_blocks.") != std::string::npos) pyramid_channels = out;
  }
  values +=
      pyramid_channels * (regions.boxes * regions.box_cells + regions.masks * regions.mask_cells);
  return sizeof(float) * kKeptPerLayer * values;
}

}  // namespace millrace
