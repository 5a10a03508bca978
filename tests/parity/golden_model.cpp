#include "tests/parity/golden_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/random.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// Returns the anchor sizes in the recording's arguments. If they are missing, returns the sizes of
/// the anchors in this recording or in the inference recording of the same model: the square anchor
/// of each level is the second one at the first position. A trace without recorded anchors uses
/// torchvision's sizes.
std::vector<double> anchor_sizes(const GoldenRun& golden) {
  if (golden.has_argument("anchors") && golden.argument("anchors").is_array())
    return golden.argument("anchors").get<std::vector<double>>();
  if (!golden.has("rpn.anchors"))
    return golden.has_beside("infer") ? anchor_sizes(golden.beside("infer"))
                                      : PyramidAnchors().sizes;
  std::vector<double> sizes;
  std::int64_t first = 0;
  const auto& counts = golden["rpn.anchors_per_level"];
  for (std::int64_t level = 0; level < counts.numel(); ++level) {
    const auto square = golden["rpn.anchors"][first + 1];
    sizes.push_back((square[2] - square[0]).item<double>());
    first += counts[level].item<std::int64_t>();
  }
  return sizes;
}

/// Values are offset + scale * u, with u in [-1, 1).
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

/// Overwrites every parameter with values drawn by splitmix64 from (name, seed, index) and scaled
/// according to the tensor's role, like `formula_init` in the golden scripts.
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

}  // namespace

MaskRcnnOptions options_of(const GoldenRun& golden) {
  auto options = default_options<MaskRcnnOptions>(parse_config("style = \"torchvision\"", "test"));
  options.pyramid.backbone =
      golden.argument("model") == "r50" ? BackboneType::resnet50 : BackboneType::resnet18;
  options.rpn.anchors.sizes = anchor_sizes(golden);
  options.rpn.post_nms_top_n_test = golden.count("post_nms");
  if (golden.has_argument("rpn_post_nms_top_n_train"))
    options.rpn.post_nms_top_n_train = golden.count("rpn_post_nms_top_n_train");
  options.box_stages.batch_size_per_image = golden.count("box_batch");
  options.detection.detections_per_img = golden.count("detections");
  return options;
}

GoldenModel::GoldenModel(const GoldenRun& golden)
    : options(options_of(golden)),
      classes(golden.count("num_classes") - 1),
      body(root / "backbone" / "body", options.pyramid),
      fpn(root / "backbone" / "fpn", body.channels(), options.pyramid.out_channels,
          {options.pyramid.fpn_norm, options.pyramid.norm_eps}),
      rpn(root / "rpn", options.rpn, options.boxes, options.pyramid.out_channels),
      box_stages(root / "roi_heads", options.box_stages, options.boxes, options.pool,
                 options.pyramid.out_channels, classes, options.first_class()),
      mask_head(root / "roi_heads", options.mask_head,
                {options.pyramid.fpn_norm, options.pyramid.norm_eps}, options.pool,
                options.pyramid.out_channels, classes, options.first_class()) {
  fill_by_formula(parameters, static_cast<std::uint64_t>(golden.count("weight_seed")));
}

Features GoldenModel::features(const at::Tensor& input, const at::Tensor& sizes,
                               bool training) const {
  return {
      fpn(body(input, {training}), {training}), {input.size(2), input.size(3)}, image_sizes(sizes)};
}

std::vector<ImageSize> image_sizes(const at::Tensor& sizes) {
  std::vector<ImageSize> result;
  for (std::int64_t i = 0; i < sizes.size(0); ++i)
    result.emplace_back(sizes[i][0].item<double>(), sizes[i][1].item<double>());
  return result;
}

at::Tensor torchvision_input(const std::vector<at::Tensor>& photos, const GoldenRun& golden,
                             at::Tensor& sizes) {
  const auto mean = at::tensor({0.485F, 0.456F, 0.406F}).view({3, 1, 1});
  const auto deviation = at::tensor({0.229F, 0.224F, 0.225F}).view({3, 1, 1});
  const auto count = static_cast<std::int64_t>(photos.size());
  sizes = at::zeros({count, 2}, at::kLong);
  std::vector<at::Tensor> images;
  std::int64_t height = 0, width = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& photo = photos[static_cast<std::size_t>(i)];
    const auto size =
        torchvision_size({static_cast<int>(photo.size(1)), static_cast<int>(photo.size(0))},
                         golden.count("min_size"), golden.count("max_size"));
    sizes[i][0] = size.height;
    sizes[i][1] = size.width;
    const auto normal = (photo.permute({2, 0, 1}).to(at::kFloat) / 255 - mean) / deviation;
    images.push_back(at::upsample_bilinear2d(normal.unsqueeze(0), {size.height, size.width},
                                             /*align_corners=*/false));
    height = std::max<std::int64_t>(height, size.height);
    width = std::max<std::int64_t>(width, size.width);
  }
  const auto padded = [](std::int64_t side) { return (side + 31) / 32 * 32; };
  auto input = at::zeros({count, 3, padded(height), padded(width)});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& image = images[static_cast<std::size_t>(i)];
    input[i].narrow(1, 0, image.size(2)).narrow(2, 0, image.size(3)).copy_(image[0]);
  }
  return input;
}

Rpn::Output recorded_rpn(const GoldenRun& golden) {
  const auto& counts = golden["rpn.anchors_per_level"];
  const auto* count = counts.data_ptr<std::int64_t>();
  return {golden["rpn.logits"],
          golden["rpn.deltas"],
          golden["rpn.anchors"],
          {count, count + counts.numel()}};
}

std::vector<at::Tensor> proposals_of(const GoldenRun& golden, const MaskRcnnOptions& options,
                                     bool training) {
  Parameters parameters;
  const Rpn rpn(Scope(parameters, 1), options.rpn, options.boxes, options.pyramid.out_channels);
  return rpn.proposals(recorded_rpn(golden), image_sizes(golden["in.image_sizes"]), training)
      .each();
}

::testing::AssertionResult same_boxes(const at::Tensor& actual, const at::Tensor& expected) {
  const auto sorted = [](const at::Tensor& boxes) {
    const auto weights = at::tensor({1.0, 1e3, 1e6, 1e9}, at::kDouble);
    const auto place = boxes.to(at::kDouble).mul(weights).sum(1);
    return boxes.index_select(0, place.argsort());
  };
  return tensors_close(sorted(actual), sorted(expected), 1e-6);
}

}  // namespace millrace::testing
