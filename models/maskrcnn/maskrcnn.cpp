// Mask R-CNN, Faster R-CNN and Cascade R-CNN on a feature pyramid: connects their parts and
// registers them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <optional>

#include "millrace/base/errors.h"
#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/maskrcnn/options.h"
#include "millrace/models/ops/map_gradients.h"
#include "millrace/models/training_checks.h"

namespace millrace {
namespace {

/// Returns proposals (P, 4), best first, with scores by rank: 1, (P - 1) / P, ...
Found ranked(const at::Tensor& boxes) {
  const auto count = boxes.size(0);
  const auto rank = at::arange(count, 0, -1, boxes.options());
  return {boxes, rank / static_cast<double>(count), at::zeros({count}, at::kLong)};
}

class MaskRcnn final : public PyramidDetector {
 public:
  using Options = MaskRcnnOptions;

  MaskRcnn(const MaskRcnnOptions& options, const ModelContext& context)
      : PyramidDetector(options, FpnTop::pool, options.mask_head.paste, context),
        options_(options),
        rpn_(root() / "rpn", options.rpn, options.boxes, pyramid().channels(),
             options.finest_stride()),
        box_stages_(root() / "roi_heads", options.box_stages, options.boxes, pooler(),
                    pooled_channels(), std::ssize(context.classes), options.first_class()) {
    if (options.masks)
      mask_head_.emplace(root() / "roi_heads", options.mask_head,
                         NormOptions{options.pyramid.fpn_norm, options.pyramid.norm_eps}, pooler(),
                         pooled_channels(), std::ssize(context.classes), options.first_class());
  }

  bool gives_masks() const override { return mask_head_.has_value(); }
  bool gives_notes() const override { return has_one_view(); }

 private:
  /// Throws ConfigError if there is a mask head and no object has a shape.
  std::vector<std::string> check_facts(const TrainingFacts& facts) const override {
    auto warnings = PyramidDetector::check_facts(facts);
    if (options_.box_stages.head.norm == Norm::bn)
      if (auto warning = norm_by_part_warning("model.box.norm is", facts))
        warnings.push_back(*std::move(warning));
    if (!mask_head_ || !facts.count_objects) return warnings;
    const auto counts = facts.count_objects();
    if (counts.without_shape == counts.objects)
      throw ConfigError(
          fmt::format("model.masks is true, but none of the {} objects to train on has a mask "
                      "(\"segmentation\"), so the mask head would learn nothing; set model.masks = "
                      "false to train on boxes only",
                      counts.objects));
    if (counts.without_shape > 0)
      warnings.push_back(
          fmt::format("{} of the {} objects to train on have no mask (\"segmentation\"), so the "
                      "mask head does not learn from them; the first is in {}",
                      counts.without_shape, counts.objects, counts.first_without_shape));
    return warnings;
  }

  RegionPooler pooler() const {
    return options_.pyramid.has_pyramid()
               ? RegionPooler(options_.pool)
               : RegionPooler(options_.pool, pyramid().resnet().last_stage());
  }
  std::int64_t pooled_channels() const {
    return options_.pyramid.has_pyramid() ? pyramid().channels() : pyramid().resnet().channels()[3];
  }

  LossSums head_losses(const Features& given, const std::vector<Truth>& truths,
                       const StepInfo& step) override {
    auto features = given;
    features.maps = with_shared_gradients(given.maps);
    const auto rpn = rpn_(features);
    const auto anchors = rpn_.match_anchors(rpn.anchors, truths);
    const auto proposals = rpn_.proposals(rpn, features.sizes, /*training=*/true);
    const auto candidates = box_stages_.candidates(proposals, truths);
    const auto samples = sample_candidates(
        {rpn_.sampling_task(anchors, step), box_stages_.sampling_task(candidates, step)});

    auto losses = rpn_.losses(features, rpn, truths, anchors, samples[0], step);
    if (step.metrics) add_recall(proposals.boxes.unbind(0), truths, *step.metrics);
    const auto regions = box_stages_.with_shared(select_sampled(candidates, samples[1]), features);
    for (auto& loss : box_stages_.losses(features, regions, truths, step))
      losses.push_back(std::move(loss));
    if (mask_head_) losses.push_back(mask_head_->loss(features, regions, truths, step));
    return losses;
  }

  std::vector<Found> find(const Features& features) override {
    const auto rpn = rpn_(features);
    const auto proposals = rpn_.proposals(rpn, features.sizes, /*training=*/false).each();
    if (features.intermediates)
      for (const auto& boxes : proposals)
        features.intermediates->proposals.push_back(ranked(boxes));
    return box_stages_.detect(features, proposals, options_.detection);
  }

  at::Tensor masks(const Features& features, const std::vector<Found>& found) override {
    if (!mask_head_) return {};
    std::vector<at::Tensor> boxes, labels;
    for (const auto& image : found) boxes.push_back(image.boxes), labels.push_back(image.labels);
    const auto all_labels = at::cat(labels);
    if (all_labels.size(0) == 0) return {};
    return mask_head_->detect(features, boxes, all_labels);
  }

  FoundNodes find_in_graph(const FeatureNodes& features) const override {
    return box_stages_.detect(features.maps,
                              rpn_.proposals(features.maps, features.padded, features.limits),
                              features.limits, options_.detection);
  }

  onnx::Value masks_in_graph(const FeatureNodes& features,
                             const onnx::Objects& found) const override {
    if (!mask_head_) return {};
    return mask_head_->detect(features.maps, {found.boxes, found.images}, found.labels);
  }

  std::int64_t mask_cells() const override { return mask_head_ ? mask_head_->cells() : 0; }

  MaskRcnnOptions options_;
  Rpn rpn_;
  BoxStages box_stages_;
  std::optional<MaskHead> mask_head_;
};

MILLRACE_REGISTER(register_detector<MaskRcnn, FasterRcnnOptions>(
    "fasterrcnn", "Faster R-CNN on a ResNet feature pyramid: boxes only"));
MILLRACE_REGISTER(register_detector<MaskRcnn>("maskrcnn",
                                              "Mask R-CNN on a ResNet feature pyramid"));
MILLRACE_REGISTER(register_detector<MaskRcnn, CascadeRcnnOptions>(
    "cascadercnn", "Cascade R-CNN on a ResNet feature pyramid; masks = true: Cascade Mask R-CNN"));

}  // namespace
}  // namespace millrace
