#include "tests/parity/golden_model.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "millrace/dataflow/stages/geometric.h"
#include "tests/parity/formula_weights.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// What the recording's arguments say; else of recorded anchors, its own or those of the inference
/// beside it (the same model's): the square cell of each level is the second of its first place. A
/// trace of neither has torchvision's own.
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

}  // namespace

MaskRcnnOptions options_of(const GoldenRun& golden) {
  auto options = MaskRcnnOptions::defaults_for(parse_config("style = \"torchvision\"", "test"));
  options.pyramid.backbone = golden.argument("model") == "r50" ? "resnet50" : "resnet18";
  options.rpn.anchors.sizes = anchor_sizes(golden);
  options.rpn.post_nms_test = golden.count("post_nms");
  if (golden.has_argument("rpn_post_nms_top_n_train"))
    options.rpn.post_nms_train = golden.count("rpn_post_nms_top_n_train");
  options.box_stages.batch = golden.count("box_batch");
  options.detection.most = golden.count("detections");
  return options;
}

GoldenModel::GoldenModel(const GoldenRun& golden)
    : options(options_of(golden)),
      classes(golden.count("num_classes") - 1),
      body(root / "backbone" / "body", options.pyramid.resnet()),
      fpn(root / "backbone" / "fpn", body.channels(), options.pyramid.channels,
          options.pyramid.head_norm()),
      rpn(root / "rpn", options.rpn, options.boxes, options.pyramid.channels),
      box_stages(root / "roi_heads", options.box_stages, options.boxes, options.pool,
                 options.pyramid.channels, classes, options.first_class()),
      box_head(Scope(twins, 1) / "roi_heads" / "box_head",
               Scope(twins, 1) / "roi_heads" / "box_predictor", options.box_stages.head,
               options.boxes.coder({10, 10, 5, 5}), options.pyramid.channels, classes,
               options.first_class()),
      mask_head(root / "roi_heads", options.mask_head, options.pyramid.head_norm(), options.pool,
                options.pyramid.channels, classes, options.first_class()) {
  for (const auto& prefix : ResNet::frozen_prefixes(options.pyramid.freeze_at))
    parameters.freeze("backbone.body." + prefix);
  for (const auto* all : {&parameters, &twins})
    fill_by_formula(*all, static_cast<std::uint64_t>(golden.count("weight_seed")));
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
  const Rpn rpn(Scope(parameters, 1), options.rpn, options.boxes, options.pyramid.channels);
  return rpn.proposals(recorded_rpn(golden), image_sizes(golden["in.image_sizes"]), training);
}

::testing::AssertionResult same_boxes(const at::Tensor& actual, const at::Tensor& expected) {
  const auto sorted = [](const at::Tensor& boxes) {
    const auto weights = at::tensor({1.0, 1e3, 1e6, 1e9}, at::kDouble);
    const auto place = boxes.to(at::kDouble).mul(weights).sum(1);
    return boxes.index_select(0, place.argsort());
  };
  return close(sorted(actual), sorted(expected), 1e-6);
}

}  // namespace millrace::testing
