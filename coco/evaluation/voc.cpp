#include "millrace/coco/evaluation/voc.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "millrace/coco/evaluation/box_iou.h"
#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {
namespace {

/// Precision and recall after each detection that is right or wrong.
struct Curve {
  std::vector<double> recall, precision;

  /// Replaces each precision by the maximum from that detection on.
  void envelop() {
    for (std::size_t i = precision.size(); i-- > 1;)
      precision[i - 1] = std::max(precision[i - 1], precision[i]);
  }
};

double area_under(const Curve& curve) {
  double area = 0, before = 0;
  for (std::size_t i = 0; i < curve.recall.size(); ++i) {
    area += (curve.recall[i] - before) * curve.precision[i];
    before = curve.recall[i];
  }
  return area;
}

double mean_of_eleven(const Curve& curve) {
  double sum = 0;
  for (int i = 0; i <= 10; ++i) {
    const auto reached = std::ranges::lower_bound(curve.recall, i * 0.1) - curve.recall.begin();
    if (reached < std::ssize(curve.recall))
      sum += curve.precision[static_cast<std::size_t>(reached)] / 11;
  }
  return sum;
}

/// Returns the detections of a category by falling score.
std::vector<std::uint32_t> ranked(const Detections& all, std::int64_t category) {
  std::vector<std::uint32_t> own;
  for (std::uint32_t i = 0; i < all.size(); ++i)
    if (all[i].category_id == category) own.push_back(i);
  std::ranges::stable_sort(own, {},
                           [&](std::uint32_t i) { return descending_score_key(all[i].score); });
  return own;
}

Xywh box_of(const Detections& all, const Detections::Record& one) {
  if (one.has_bbox || one.mask == Detections::kNoMask) return one.bbox;
  const auto& box = all.mask_of(one).extent.box;
  return {box.x1, box.y1, box.width(), box.height()};
}

bool is_difficult(const Annotation& object) { return object.ignored || object.crowd; }

VocClass scored(const Dataset& truth, const Detections& all, std::int64_t category, double iou) {
  VocClass result{.category_id = category};
  for (const auto& object : truth.annotations)
    result.objects += object.category_id == category && !is_difficult(object);
  if (result.objects == 0) return result;
  std::map<const Annotation*, bool> taken;
  Curve curve;
  std::int64_t right = 0, wrong = 0;
  for (const auto index : ranked(all, category)) {
    const auto* image = truth.find_image(all[index].image_id);
    if (!image) continue;
    const Annotation* nearest = nullptr;
    double most = 0;
    const auto box = box_of(all, all[index]);
    for (const auto& object : truth.objects(*image)) {
      if (object.category_id != category) continue;
      const double own = box_iou(box.data(), object.bbox, /*crowd=*/false);
      if (own > most) nearest = &object, most = own;
    }
    const bool hits = nearest && most >= iou;
    if (hits && is_difficult(*nearest)) continue;
    const bool is_right = hits && !std::exchange(taken[nearest], true);
    right += is_right;
    wrong += !is_right;
    curve.recall.push_back(static_cast<double>(right) / static_cast<double>(result.objects));
    curve.precision.push_back(static_cast<double>(right) / static_cast<double>(right + wrong));
  }
  curve.envelop();
  result.ap = area_under(curve);
  result.ap_11 = mean_of_eleven(curve);
  return result;
}

}  // namespace

VocEvaluation evaluate_voc(const Dataset& truth, const Detections& detections,
                           std::span<const std::int64_t> category_ids, double iou) {
  VocEvaluation result;
  if (category_ids.empty())
    for (const auto& category : truth.categories)
      result.classes.push_back(scored(truth, detections, category.id, iou));
  for (const auto id : category_ids) result.classes.push_back(scored(truth, detections, id, iou));
  double sum = 0, sum_11 = 0;
  int count = 0;
  for (const auto& one : result.classes) {
    if (one.objects == 0) continue;
    sum += one.ap;
    sum_11 += one.ap_11;
    ++count;
  }
  if (count > 0) result.map = sum / count, result.map_11 = sum_11 / count;
  return result;
}

std::string table(const VocEvaluation& evaluation, const Dataset& truth) {
  const auto number = [](double value) {
    return value < 0 ? std::string("-") : fmt::format("{:.4f}", value);
  };
  auto text = fmt::format("{:<20}  {:>8}  {:>8}  {:>8}\n", "Pascal VOC, IoU 0.5", "objects", "AP",
                          "AP 2007");
  for (const auto& one : evaluation.classes) {
    const auto position = truth.category_index(one.category_id);
    const auto name =
        position < 0
            ? std::to_string(one.category_id)
            : std::string(truth.text(truth.categories[static_cast<std::size_t>(position)].name));
    text += fmt::format("{:<20}  {:>8}  {:>8}  {:>8}\n", name, one.objects, number(one.ap),
                        number(one.ap_11));
  }
  return text + fmt::format("{:<20}  {:>8}  {:>8}  {:>8}\n", "mean", "", number(evaluation.map),
                            number(evaluation.map_11));
}

}  // namespace millrace::coco
