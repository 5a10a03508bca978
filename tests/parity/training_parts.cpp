#include "tests/parity/training_parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "tests/parity/encoded.h"

namespace millrace::testing {

RecordedTruth::RecordedTruth(const at::Tensor& all_boxes, const at::Tensor& all_labels,
                             const at::Tensor& masks)
    : boxes(all_boxes),
      labels(all_labels - 1),
      height(static_cast<double>(masks.size(1))),
      width(static_cast<double>(masks.size(2))) {
  for (std::int64_t i = 0; i < masks.size(0); ++i) shapes.emplace_back(encoded(masks[i]));
}

Truth RecordedTruth::borrowed() const {
  Truth truth{boxes, labels, {}, height, width};
  for (const auto& shape : shapes) truth.segmentations.push_back(&shape);
  return truth;
}

SampledRegions sampled_regions(const at::Tensor& boxes, const at::Tensor& labels,
                               const at::Tensor& matched) {
  const auto foreground = (labels > 0).nonzero().squeeze(1);
  const auto background = (labels == 0).nonzero().squeeze(1);
  return {boxes.index_select(0, at::cat({foreground, background})),
          matched.to(at::kLong).index_select(0, foreground), foreground.size(0)};
}

std::map<std::string, at::Tensor> losses_of(const GoldenModel& model, const Features& features,
                                            const std::vector<Truth>& truths,
                                            const std::vector<RecordedDraw>& draws) {
  const auto output = model.rpn(features);
  std::vector<Rpn::Drawn> anchors;
  std::vector<SampledRegions> regions;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const auto matches = model.rpn.match_anchors(output.anchors, truths[i]);
    anchors.push_back(
        {{draws[i].positive, draws[i].negative}, matches.truth.index_select(0, draws[i].positive)});
    regions.push_back(draws[i].regions);
  }
  auto losses = model.rpn.losses(output, truths, anchors, {});
  for (auto& loss : model.box_stages.losses(features, regions, truths, {}))
    losses.push_back(std::move(loss));
  losses.emplace_back("loss_mask", model.mask_head.loss(features, regions, truths, {}));
  return {losses.begin(), losses.end()};
}

}  // namespace millrace::testing
