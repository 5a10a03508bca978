#include "millrace/tools/data/ceilings.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/coco/evaluation/evaluate.h"

namespace millrace {
namespace {

/// An object and its perfect box prediction.
struct Answer {
  const coco::Annotation* object = nullptr;
  Box box;

  coco::Xywh xywh() const { return {box.x1, box.y1, box.width(), box.height()}; }
};

using Answers = std::vector<std::vector<Answer>>;  // by image, in the order of the file

Answers answers_of(const DataSplit& split) {
  const auto& data = *split.annotations;
  Answers answers(data.images.size());
  tbb::parallel_for(std::size_t{0}, answers.size(), [&](std::size_t i) {
    const auto& image = data.images[i];
    for (const auto& object : data.objects(image)) {
      const auto box = coco::clipped_box(object, image);
      if (!object.crowd && box.has_area() &&
          std::ranges::count(split.category_ids, object.category_id) > 0)
        answers[i].push_back({&object, box});
    }
  });
  return answers;
}

/// Number of removed detections.
struct Removed {
  std::size_t by_nms = 0, by_limit = 0;
};

/// Applies NMS and the limit to an image's predictions.
Removed apply_nms_and_limit(std::vector<Answer>& answers, const CeilingRule& rule) {
  Removed removed;
  std::vector<Answer> kept;
  for (const auto& one : answers) {
    const auto box = one.xywh();
    const bool goes = rule.nms && std::ranges::any_of(kept, [&](const Answer& other) {
                        return other.object->category_id == one.object->category_id &&
                               coco::box_iou(box.data(), other.xywh().data(), false) > *rule.nms;
                      });
    if (goes)
      ++removed.by_nms;
    else
      kept.push_back(one);
  }
  if (kept.size() > rule.detections_per_image) {
    removed.by_limit = kept.size() - rule.detections_per_image;
    kept.resize(rule.detections_per_image);
  }
  answers = std::move(kept);
  return removed;
}

/// Rasterises an object's mask to the mask head's target and pastes it like a detection.
coco::Rle through_cells(const coco::Segmentation& shape, const Box& box,
                        const CeilingRule::Masks& rule, const coco::Image& image) {
  constexpr int kFiner = 4;  // sample points per cell side, for soft cells
  const int points = rule.soft ? kFiner : 1, fine = rule.cells * points;
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(fine) * static_cast<std::size_t>(fine));
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape))
    coco::rasterize_in_box(*polygons, box, fine, bits.data());
  else
    coco::crop_in_box(std::get<coco::Rle>(shape), box, fine, bits.data());
  const auto side = static_cast<std::size_t>(rule.cells), part = static_cast<std::size_t>(points);
  std::vector<float> shares(side * side, 0.F);
  for (std::size_t y = 0; y < side * part; ++y)
    for (std::size_t x = 0; x < side * part; ++x)
      shares[y / part * side + x / part] += bits[y * side * part + x];
  for (float& share : shares) share /= static_cast<float>(points * points);
  const auto paste = rule.padded ? coco::paste_framed : coco::paste;
  return paste(shares.data(), rule.cells, box, static_cast<std::uint32_t>(image.height),
               static_cast<std::uint32_t>(image.width), 0.5F);
}

/// Evaluates predictions on a split.
class SplitEvaluator {
 public:
  SplitEvaluator(const DataSplit& split, std::uint32_t max_detections)
      : split_(split), max_detections_(max_detections) {}

  double box_ap(const Answers& answers) const {
    coco::Detections found;
    for (const auto& own : answers)
      for (const auto& one : own) found.add(record_of(one));
    return ap(found, coco::IouType::box);
  }

  /// Returns the mask AP; objects without a shape have no prediction.
  double mask_ap(const Answers& answers, const CeilingRule::Masks& rule) const {
    const auto& data = *split_.annotations;
    std::vector<std::vector<coco::Rle>> masks(answers.size());
    tbb::parallel_for(std::size_t{0}, answers.size(), [&](std::size_t i) {
      for (const auto& one : answers[i]) {
        const auto shape = data.segmentation(*one.object);
        masks[i].push_back(std::holds_alternative<std::monostate>(shape)
                               ? coco::Rle()
                               : through_cells(shape, one.box, rule, data.images[i]));
      }
    });
    coco::Detections found;
    for (std::size_t i = 0; i < answers.size(); ++i)
      for (std::size_t a = 0; a < answers[i].size(); ++a)
        if (const auto& mask = masks[i][a]; !mask.counts.empty())
          found.add(record_of(answers[i][a]), coco::encode_counts(mask), mask.height, mask.width);
    return ap(found, coco::IouType::mask);
  }

 private:
  static coco::Detections::Record record_of(const Answer& one) {
    coco::Detections::Record record;
    record.image_id = one.object->image_id;
    record.category_id = one.object->category_id;
    record.bbox = one.xywh();
    record.has_bbox = true;
    record.score = 1;
    return record;
  }

  double ap(const coco::Detections& found, coco::IouType iou) const {
    auto options = coco::options_for(*split_.annotations, iou, max_detections_);
    for (const auto id : split_.category_ids)
      if (id != kNoCategory) options.category_ids.push_back(id);
    if (options.category_ids.empty()) return -1;
    return coco::evaluate(*split_.annotations, found, options).stats.front();
  }

  const DataSplit& split_;
  std::uint32_t max_detections_;
};

/// Removes predictions for objects that no anchor matches. Returns their number.
std::size_t remove_unreached(Answers& answers, const DataSplit& split, const AnchorRule& anchors,
                             const ResizeRule& resize) {
  const auto& data = *split.annotations;
  SeenData seen;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const cv::Size original(data.images[i].width, data.images[i].height);
    SeenImage image{.image_id = data.images[i].id,
                    .original = original,
                    .seen = resize ? resize(original) : original,
                    .first = static_cast<std::uint32_t>(seen.objects.size()),
                    .count = static_cast<std::uint32_t>(answers[i].size())};
    const auto x = static_cast<float>(image.seen.width) / static_cast<float>(original.width),
               y = static_cast<float>(image.seen.height) / static_cast<float>(original.height);
    for (const auto& [object, box] : answers[i])
      seen.objects.push_back({.box = {box.x1 * x, box.y1 * y, box.x2 * x, box.y2 * y}});
    seen.images.push_back(image);
  }
  const auto coverage = anchor_coverage(seen, anchors);
  std::size_t position = 0, removed = 0;
  for (auto& own : answers)
    removed += std::erase_if(
        own, [&](const Answer&) { return coverage[position++].match == MatchKind::nothing; });
  return removed;
}

}  // namespace

Ceilings ceilings(const DataSplit& split, const CeilingRule& rule) {
  const SplitEvaluator evaluator(split, rule.max_detections);
  const auto all = answers_of(split);
  const auto after_nms_and_limit = [&](Answers answers) {
    std::vector<Removed> removed(answers.size());
    tbb::parallel_for(std::size_t{0}, answers.size(),
                      [&](std::size_t i) { removed[i] = apply_nms_and_limit(answers[i], rule); });
    return std::pair(std::move(answers), std::move(removed));
  };
  Ceilings result;
  for (const auto& object : split.annotations->annotations)
    result.objects +=
        !object.crowd && std::ranges::count(split.category_ids, object.category_id) > 0;
  const auto [left, removed] = after_nms_and_limit(all);
  result.boxes = evaluator.box_ap(left);
  for (const auto& [by_nms, by_limit] : removed)
    result.suppressed += by_nms, result.beyond_limit += by_limit;
  if (rule.anchors) {
    auto reached = all;
    result.unreached = remove_unreached(reached, split, *rule.anchors, rule.resize);
    result.reached = evaluator.box_ap(after_nms_and_limit(std::move(reached)).first);
  }
  if (rule.masks) result.masks = evaluator.mask_ap(all, *rule.masks);
  return result;
}

}  // namespace millrace
