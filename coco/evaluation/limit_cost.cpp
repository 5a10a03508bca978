#include "millrace/coco/evaluation/limit_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace millrace::coco {
namespace {

/// The objects that count in an evaluation.
class CountedObjects {
 public:
  CountedObjects(const Dataset& truth, const EvaluateOptions& options)
      : truth_(truth), options_(options), ids_(options.category_ids) {
    std::ranges::sort(ids_);
  }

  std::vector<const Annotation*> of(const Image& image) const {
    std::vector<const Annotation*> found;
    for (const auto& object : truth_.objects(image))
      if (!(options_.federated ? object.ignored : object.crowd) &&
          (ids_.empty() || std::ranges::binary_search(ids_, object.category_id)))
        found.push_back(&object);
    return found;
  }

 private:
  const Dataset& truth_;
  const EvaluateOptions& options_;
  std::vector<std::int64_t> ids_;  // empty = all
};

/// Returns the maximum number of objects to which one detection limit applies.
std::size_t most_together(const std::vector<const Annotation*>& objects, bool by_class) {
  if (!by_class) return objects.size();
  std::map<std::int64_t, std::size_t> counts;
  std::size_t most = 0;
  for (const auto* one : objects) most = std::max(most, ++counts[one->category_id]);
  return most;
}

Detections::Record perfect_answer(const Annotation& object) {
  Detections::Record record;
  record.image_id = object.image_id;
  record.category_id = object.category_id;
  std::copy_n(object.bbox, 4, record.bbox.begin());
  record.has_bbox = true;
  record.score = 1;
  return record;
}

}  // namespace

LimitCost limit_cost(const Dataset& truth, EvaluateOptions options,
                     std::span<const std::int64_t> image_ids) {
  options.iou = IouType::box;
  options.area = AreaFrom::box;
  const auto& limits = options.max_detections;
  const auto largest = *std::ranges::max_element(limits);
  LimitCost cost{.limit = options.of_largest || limits.size() < 3 ? largest : 100,
                 .by_class = !options.federated && !options.class_agnostic};
  const CountedObjects objects(truth, options);
  std::vector<std::int64_t> wanted(image_ids.begin(), image_ids.end());
  std::ranges::sort(wanted);
  const auto each = [&](auto use) {
    for (const auto& image : truth.images)
      if (wanted.empty() || std::ranges::binary_search(wanted, image.id)) use(image);
  };
  each([&](const Image& image) {
    ++cost.images;
    cost.images_over_limit += most_together(objects.of(image), cost.by_class) > cost.limit;
  });
  if (cost.images_over_limit == 0) return cost;
  std::vector<Detections::Record> answers;
  each([&](const Image& image) {
    for (const auto* one : objects.of(image)) answers.push_back(perfect_answer(*one));
  });
  cost.best_ap = evaluate(truth, Detections(std::move(answers)), options, image_ids).stats.front();
  return cost;
}

std::string text(const LimitCost& cost) {
  if (cost.images_over_limit == 0) return "";
  return fmt::format("{} of {} images have more than {} objects{}: the best possible AP is {:.2f}",
                     cost.images_over_limit, cost.images, cost.limit,
                     cost.by_class ? " of a class" : "", std::floor(100 * cost.best_ap) / 100);
}

}  // namespace millrace::coco
