#include "millrace/models/pyramid_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace millrace {
namespace {

constexpr int kC4 = 4;        // log2 of the stride of the only map
constexpr int kLevels = 8;    // strides 1 .. 128
constexpr double kIndex = 8;  // bytes of what a max pooling keeps of each output besides

/// Freed blocks that a pass without gradients cannot use again, since the next ones are of other
/// sizes. Fitted to the peaks of tests/bench/memory.py.
constexpr double kScattered = 1.4;

/// The digit after `word` in the name.
int digit_after(std::string_view name, std::string_view word) {
  return name[name.find(word) + word.size()] - '0';
}

/// A tensor by its name.
struct Named {
  std::string_view name;
  bool has(std::string_view word) const { return name.find(word) != std::string_view::npos; }

  /// Of the backbone's stem or of one of its four stages, 0 .. 4; -1: of something else.
  int stage() const {
    if (has("body.layer")) return digit_after(name, "body.layer");
    return has("body.") && !has("body.stage") ? 0 : -1;
  }
};

/// The last layers of heads on every level, whose outputs are joined to one.
bool is_of_logits(const Named& layer) { return layer.has("cls_logits.") || layer.has("bbox_"); }

double at_stride(double pixels, int log2) { return pixels / std::pow(4.0, log2); }

/// The number of cells of a layer's output.
double places(const Named& layer, const PassLoad& load) {
  const auto& [pixels, finest, regions, folds, bytes, trains] = load;
  if (layer.has("body.stage"))  // of an HRNet: the coarser branch of the two
    for (const std::string_view word : {"branches.", "fuse_layers."})
      if (layer.has(word)) return at_stride(pixels, digit_after(layer.name, word) + 2);
  if (finest == kC4 && layer.has("body.layer4")) return regions.boxes * regions.box_cells / 4;
  if (layer.has("body.")) return at_stride(pixels, std::max(0, layer.stage()) + 1);
  if (layer.has("extra_blocks.")) return at_stride(pixels, 6);
  if (layer.has("_blocks.")) return at_stride(pixels, digit_after(layer.name, "_blocks.") + finest);
  if (layer.has("mask_predictor")) return 4 * regions.masks * regions.mask_cells;
  if (layer.has("mask_head")) return regions.masks * regions.mask_cells;
  if (layer.has("box_head")) return regions.boxes * regions.box_cells;
  return at_stride(pixels, finest) * 4 / 3;  // a head on every level
}

/// The widest output of each kind of layer, numbers.
struct Maps {
  std::array<double, kLevels> body{};  // by log2 of the stride
  double stem = 0;                     // channels
  double pyramid = 0;                  // channels
  double logits = 0;                   // of heads on every level, all together
  double upsampled = 0;                // channels of the mask head's transposed convolution

  double all_of_body(double pixels) const {
    double all = 0;
    for (int log2 = 2; log2 < kLevels; ++log2)
      all += body[static_cast<std::size_t>(log2)] * at_stride(pixels, log2);
    return all;
  }
};

Maps maps_of(const Parameters& parameters, const PassLoad& load) {
  Maps maps;
  for (const auto& parameter : parameters) {
    if (parameter.kind != ParameterKind::weight || parameter.value.dim() != 4) continue;
    const Named layer{parameter.name};
    const auto out = static_cast<double>(parameter.value.size(0));
    const auto widen = [out](double& most) { most = std::max(most, out); };
    if (const auto stage = layer.stage(); stage == 0)
      widen(maps.stem);
    else if (stage > 0)
      widen(maps.body[static_cast<std::size_t>(stage) + 1]);
    else if (layer.has("body.stage") && layer.has("branches."))
      widen(maps.body[static_cast<std::size_t>(digit_after(layer.name, "branches.")) + 2]);
    else if (layer.has("_blocks."))
      widen(maps.pyramid);
    else if (layer.has("conv5_mask"))
      widen(maps.upsampled);
    else if (is_of_logits(layer))
      maps.logits += out * places(layer, load);
  }
  return maps;
}

/// Whether an RPN looks at the pyramid, whose loss keeps no maps.
bool has_rpn(const Parameters& parameters) {
  return std::ranges::any_of(parameters,
                             [](const auto& each) { return each.name.starts_with("rpn."); });
}

/// What the layers keep for the backward pass, bytes: a convolution its input, a matrix product the
/// weight in half precision too, a trained norm what it takes.
double kept_bytes(const Parameters& parameters, const PassLoad& load) {
  const bool of_regions = has_rpn(parameters);
  double values = 0, copies = 0, bytes = 0;
  std::array<double, kLevels> frozen{};  // channels of the last map of a frozen stage
  for (const auto& parameter : parameters) {
    const Named layer{parameter.name};
    const auto& value = parameter.value;
    const bool is_body = layer.has("body.");
    const auto out = static_cast<double>(value.size(0));
    if (parameter.kind == ParameterKind::norm && parameter.trainable()) {
      if (layer.name.ends_with("weight") && !(is_body && load.folds_norm))
        values += out * places(layer, load);
      continue;
    }
    if (parameter.kind != ParameterKind::weight) continue;
    if (!parameter.trainable()) {
      if (const auto stage = layer.stage(); stage > 0) {
        auto& most = frozen[static_cast<std::size_t>(stage) + 1];
        most = std::max(most, out);
      }
      continue;
    }
    if (value.dim() != 4) {
      values += out * load.regions.boxes;
      if (load.value_bytes < sizeof(float)) copies += static_cast<double>(value.numel());
    } else if (!layer.has("downsample") && !is_of_logits(layer) && !layer.has("mask_fcn_logits") &&
               !(of_regions && (layer.has("rpn.") || layer.has("layer_blocks.")))) {
      values += out * places(layer, load);
    }
    if (layer.stage() == 0)  // the pooling after it
      bytes += out * at_stride(load.pixels, 2) * (load.value_bytes + kIndex);
  }
  for (int log2 = 2; log2 < kLevels; ++log2)
    values += frozen[static_cast<std::size_t>(log2)] * at_stride(load.pixels, log2);
  return load.value_bytes * (values + copies) + bytes;
}

}  // namespace

double pass_bytes(const Parameters& parameters, const PassLoad& load) {
  const auto& [pixels, finest, regions, folds, bytes, trains] = load;
  const auto maps = maps_of(parameters, load);
  const auto finest_map = maps.pyramid * at_stride(pixels, finest);
  const auto pyramid = finest_map * 4 / 3;
  const auto boxes = 2 * maps.pyramid * regions.boxes * regions.box_cells;  // and as rows, kept
  const auto masks = maps.pyramid * regions.masks * regions.mask_cells;
  const auto upsampled = 4 * regions.masks * regions.mask_cells * maps.upsampled;
  if (trains) {
    const bool of_regions = has_rpn(parameters);
    const auto kept = kept_bytes(parameters, load) + bytes * (regions.stages * boxes / 2 + masks) +
                      (of_regions ? 1 : 3) * sizeof(float) * maps.logits;  // as one, and gradients
    // The first gradients, while all is kept; of regions, those of the pyramid's maps twice.
    return kept + bytes * std::max(2 * upsampled, boxes + (of_regions ? 2 * pyramid : 0));
  }
  const auto stem = maps.stem * (at_stride(pixels, 1) + at_stride(pixels, 2)) +
                    kIndex / bytes * maps.stem * at_stride(pixels, 2);
  const auto stage = 2.5 * maps.body[2] * at_stride(pixels, 2);
  const auto neck = maps.all_of_body(pixels) + 2 * finest_map + pyramid;
  const auto heads =
      pyramid + std::max({boxes, 2 * masks + upsampled, finest_map + 3 * maps.logits});
  return bytes * kScattered * std::max({stem, stage, neck, heads});
}

}  // namespace millrace
