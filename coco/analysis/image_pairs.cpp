#include "millrace/coco/analysis/image_pairs.h"

#include <tbb/parallel_for.h>

#include <algorithm>

namespace millrace::coco {

std::size_t best_free(const ImagePairs& pairs, std::size_t f, const std::vector<bool>& taken,
                      bool own_category_only) {
  std::size_t best = pairs.objects.size();
  double most = kForeground;
  bool own = false;
  for (std::size_t o = 0; o < pairs.objects.size(); ++o) {
    if (pairs.objects[o].crowd || taken[o]) continue;
    const bool same = pairs.same_category(f, o);
    if (own_category_only && !same) continue;
    const double overlap = pairs.overlap(f, o);
    if (overlap < most || (overlap == most && own && !same)) continue;
    most = overlap, own = same, best = o;
  }
  return best;
}

bool in_crowd(const ImagePairs& pairs, std::size_t f) {
  for (std::size_t o = 0; o < pairs.objects.size(); ++o)
    if (pairs.objects[o].crowd && pairs.same_category(f, o) && pairs.overlap(f, o) >= kForeground)
      return true;
  return false;
}

void for_each_image(const Plan& plan, const Detections& detections, const Matches& matches,
                    const std::function<void(const ImagePairs&)>& body) {
  const Dataset& truth = plan.truth;
  const EvaluateOptions& options = plan.options;
  std::vector<std::vector<ImagePairs::Found>> by_image(truth.images.size());
  for (std::uint32_t i = 0; i < matches.detections.size(); ++i)
    by_image[matches.detections[i].image].push_back({i, matches.detections[i].category});
  tbb::parallel_for(std::size_t{0}, truth.images.size(), [&](std::size_t i) {
    const Image& image = truth.images[i];
    ImagePairs pairs;
    pairs.found = std::move(by_image[i]);
    std::ranges::stable_sort(pairs.found, {}, [&](const auto& one) {
      return descending_score_key(matches.detections[one.match].score);
    });
    for (std::uint32_t a = image.first; a < image.first + image.count; ++a) {
      const int category = plan.category(truth.annotations[a].category_id);
      pairs.objects.push_back({a, static_cast<std::uint32_t>(category),
                               !plan.counts(truth.annotations[a], /*area=*/0)});
    }
    std::ranges::stable_sort(pairs.objects, {}, &ImagePairs::Object::category);
    if (options.class_agnostic)
      for (auto& object : pairs.objects) object.category = 0;
    if (pairs.found.empty() && pairs.objects.empty()) return;

    std::vector<std::uint32_t> found;
    std::vector<const Annotation*> objects;
    for (const auto& one : pairs.found) found.push_back(matches.detections[one.match].detection);
    for (const auto& one : pairs.objects) objects.push_back(&truth.annotations[one.annotation]);
    if (options.iou == IouType::box)
      box_overlaps(plan, detections, found, objects, pairs.overlaps);
    else
      mask_overlaps(plan, detections, found, objects, image, kBackground, pairs.overlaps);
    body(pairs);
  });
}

}  // namespace millrace::coco
