#include "tests/parity/training_parts.h"
#include "millrace/models/detector/loss_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

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

namespace {

/// Makes SampledCandidates from counts; `rows` [R] has indices into the candidates of all images.
SampledCandidates samples_of(const std::vector<SampleCount>& counts, const at::Tensor& rows) {
  std::int64_t longest = 0;
  for (const auto& count : counts) longest = std::max(longest, count.all());
  std::vector<std::int64_t> image, slots, foreground;
  for (std::int64_t i = 0; i < std::ssize(counts); ++i)
    for (std::int64_t k = 0; k < counts[static_cast<std::size_t>(i)].all(); ++k) {
      if (k < counts[static_cast<std::size_t>(i)].foreground)
        foreground.push_back(std::ssize(image));
      image.push_back(i);
      slots.push_back(i * longest + k);
    }
  return {counts, rows, at::tensor(image, at::kLong), at::tensor(slots, at::kLong),
          at::tensor(foreground, at::kLong)};
}

}  // namespace

RecordedRegions sampled_regions(const at::Tensor& boxes, const at::Tensor& labels,
                                const at::Tensor& matched) {
  const auto foreground = (labels > 0).nonzero().squeeze(1);
  const auto background = (labels == 0).nonzero().squeeze(1);
  return {boxes.index_select(0, at::cat({foreground, background})),
          matched.to(at::kLong).index_select(0, foreground), foreground.size(0)};
}

SampledRegions together(const std::vector<RecordedRegions>& regions,
                        const std::vector<Truth>& truths) {
  std::vector<SampleCount> counts;
  std::vector<at::Tensor> boxes, truth;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    counts.push_back({regions[i].foreground, regions[i].boxes.size(0) - regions[i].foreground});
    boxes.push_back(regions[i].boxes);
    truth.push_back(regions[i].truth + first);
    first += truths[i].boxes.size(0);
  }
  return {as_rois(boxes), at::cat(truth), samples_of(counts, {})};
}

std::map<std::string, at::Tensor> losses_of(const GoldenModel& model, const Features& features,
                                            const std::vector<Truth>& truths,
                                            const std::vector<RecordedDraw>& draws) {
  const auto output = model.rpn(features);
  const auto matches = model.rpn.match_anchors(output.anchors, truths);
  std::vector<SampleCount> counts;
  std::vector<at::Tensor> rows;
  std::vector<RecordedRegions> regions;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    const auto& [positive, negative, of_image] = draws[i];
    counts.push_back({positive.size(0), negative.size(0)});
    rows.push_back(at::cat({positive, negative}) +
                   static_cast<std::int64_t>(i) * output.anchors.size(0));
    regions.push_back(of_image);
  }
  auto losses =
      model.rpn.losses(features, output, truths, matches, samples_of(counts, at::cat(rows)), {});
  const auto sampled = together(regions, truths);
  for (auto& loss : model.box_stages.losses(features, sampled, truths, {}))
    losses.push_back(std::move(loss));
  losses.push_back(model.mask_head.loss(features, sampled, truths, {}));
  const auto means = means_of(losses);
  return {means.begin(), means.end()};
}

}  // namespace millrace::testing
