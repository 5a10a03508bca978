// Mask R-CNN (He et al. 2017) with a feature pyramid: wires the parts together and registers itself.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "models/backbones/fpn.h"
#include "models/backbones/resnet.h"
#include "models/layers/normalize.h"
#include "models/maskrcnn/box_head.h"
#include "models/maskrcnn/mask_head.h"
#include "models/maskrcnn/options.h"
#include "models/maskrcnn/paste.h"
#include "models/maskrcnn/rpn.h"
#include "trainer/detector.h"

namespace millrace {
namespace {

PixelOptions pixel_options(const MaskRcnnOptions& options) {
  if (options.pixel_mean.size() != 3 || options.pixel_std.size() != 3)
    throw ConfigError("model.pixel_mean and model.pixel_std take three numbers each");
  PixelOptions result{.bgr = options.pixel_order == "bgr"};
  for (std::size_t c = 0; c < 3; ++c) {
    result.mean[c] = static_cast<float>(options.pixel_mean[c]);
    result.std[c] = static_cast<float>(options.pixel_std[c]);
  }
  return result;
}

/// The ground truth of one image, without its crowd regions.
Truth truth_of(const Instances& objects, const ImageInfo& image) {
  Truth truth{.height = static_cast<double>(image.height),
              .width = static_cast<double>(image.width)};
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (!objects.crowd[i]) rows.push_back(i);
  const auto count = static_cast<std::int64_t>(rows.size());
  truth.boxes = at::empty({count, 4}, at::kFloat);
  truth.labels = at::empty({count}, at::kLong);
  auto* box = truth.boxes.data_ptr<float>();
  auto* label = truth.labels.data_ptr<std::int64_t>();
  for (const auto row : rows) {
    const auto& from = objects.boxes[row];
    *box++ = from.x1, *box++ = from.y1, *box++ = from.x2, *box++ = from.y2;
    *label++ = objects.classes[row];
    truth.segmentations.push_back(&objects.segmentations[row]);
  }
  return truth;
}

/// True (height, width) of the images, network pixels.
std::vector<std::pair<double, double>> sizes_of(const Batch& batch) {
  std::vector<std::pair<double, double>> sizes;
  for (const auto& image : batch.images) sizes.emplace_back(image.height, image.width);
  return sizes;
}

class MaskRcnn final : public Detector {
 public:
  MaskRcnn(const MaskRcnnOptions& options, const ModelContext& context)
      : options_(options), pixels_(pixel_options(options)) {
    const Scope root(parameters_, context.seed);
    const auto classes = static_cast<std::int64_t>(context.classes.size());
    const auto resnet = options.resnet();
    backbone_ = ResNet(root / "backbone" / "body", resnet);
    fpn_ = Fpn(root / "backbone" / "fpn", backbone_.channels(), options.fpn_channels,
               {options.fpn_norm, options.norm_epsilon});
    rpn_ = Rpn(root / "rpn", options);
    box_head_ = BoxHead(root / "roi_heads", options, classes);
    if (options.masks) mask_head_ = MaskHead(root / "roi_heads", options, classes);
    for (const auto& prefix : ResNet::frozen_prefixes(resnet.freeze_at))
      parameters_.freeze("backbone.body." + prefix);
  }

  Losses losses(const Batch& batch, const StepInfo& step) override {
    std::vector<Truth> truths;
    for (std::size_t i = 0; i < batch.size(); ++i)
      truths.push_back(truth_of(batch.objects[i], batch.images[i]));

    const auto features = this->features(batch, /*training=*/true);
    const auto rpn = rpn_(features, {batch.height, batch.width});
    auto losses = rpn_.losses(rpn, truths, step);

    const auto proposals = rpn_.proposals(rpn, sizes_of(batch), /*training=*/true);
    std::vector<SampledRegions> regions;
    for (std::size_t i = 0; i < truths.size(); ++i)
      regions.push_back(box_head_.sample_regions(proposals[i], truths[i], step, i));
    for (auto& loss : box_head_.losses(features, regions, truths))
      losses.push_back(std::move(loss));
    if (options_.masks)
      losses.emplace_back("mask", mask_head_.loss(features, regions, truths, true));
    return losses;
  }

  std::vector<std::vector<DetectedObject>> detect(const Batch& batch) override {
    const at::NoGradGuard no_grad;
    const auto features = this->features(batch, /*training=*/false);
    const auto rpn = rpn_(features, {batch.height, batch.width});
    const auto sizes = sizes_of(batch);
    const auto found =
        box_head_.detect(features, rpn_.proposals(rpn, sizes, /*training=*/false), sizes);

    at::Tensor masks;
    if (options_.masks) {
      std::vector<at::Tensor> boxes, labels;
      for (const auto& image : found) boxes.push_back(image.boxes), labels.push_back(image.labels);
      const auto all_labels = at::cat(labels);
      if (all_labels.size(0) > 0) masks = mask_head_.detect(features, boxes, all_labels);
    }
    return in_original_pixels(batch, found, masks);
  }

  const Parameters& parameters() const override { return parameters_; }

  void parameters_changed() override {
    backbone_.refresh();
    fpn_.refresh();
    mask_head_.refresh();
  }

 private:
  /// P2..P6
  std::vector<at::Tensor> features(const Batch& batch, bool training) const {
    return fpn_(backbone_(normalize(batch, pixels_), training), training);
  }

  /// masks: (D over all images, M, M), undefined where the model gives none
  std::vector<std::vector<DetectedObject>> in_original_pixels(
      const Batch& batch, const std::vector<BoxHead::Found>& found, const at::Tensor& masks) const {
    std::vector<std::vector<DetectedObject>> result(batch.size());
    std::int64_t first = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& image = batch.images[i];
      const auto scale = at::empty({4}, at::kFloat);
      auto* s = scale.data_ptr<float>();
      s[0] = s[2] = image.scale_x, s[1] = s[3] = image.scale_y;
      const auto boxes =
          clip_boxes(found[i].boxes / scale, image.original_height, image.original_width)
              .contiguous();
      const auto scores = found[i].scores.contiguous(), labels = found[i].labels.contiguous();
      const auto* box = boxes.data_ptr<float>();
      result[i].resize(static_cast<std::size_t>(boxes.size(0)));
      at::parallel_for(0, boxes.size(0), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t d = begin; d < end; ++d) {
          auto& object = result[i][static_cast<std::size_t>(d)];
          object.box = {box[d * 4], box[d * 4 + 1], box[d * 4 + 2], box[d * 4 + 3]};
          object.score = scores.data_ptr<float>()[d];
          object.label = static_cast<std::int32_t>(labels.data_ptr<std::int64_t>()[d]);
          if (!masks.defined()) continue;
          const auto size = masks.size(1);
          object.mask =
              paste_mask(options_.mask_paste, masks.data_ptr<float>() + (first + d) * size * size,
                         size, object.box, static_cast<std::uint32_t>(image.original_height),
                         static_cast<std::uint32_t>(image.original_width));
        }
      });
      first += boxes.size(0);
    }
    return result;
  }

  MaskRcnnOptions options_;
  PixelOptions pixels_;
  Parameters parameters_;
  ResNet backbone_;
  Fpn fpn_;
  Rpn rpn_;
  BoxHead box_head_;
  MaskHead mask_head_;
};

const bool registered = detectors().add<MaskRcnnOptions>(
    "maskrcnn", "Mask R-CNN (or Faster R-CNN with masks = false) on a ResNet feature pyramid",
    [](const Config& table, const ModelContext& context) -> std::unique_ptr<Detector> {
      return std::make_unique<MaskRcnn>(read_options<MaskRcnnOptions>(table, {"name", "weights"}),
                                        context);
    });

}  // namespace
}  // namespace millrace
