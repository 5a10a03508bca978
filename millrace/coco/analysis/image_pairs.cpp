#include "millrace/coco/analysis/image_pairs.h"

#include <tbb/parallel_for.h>

#include <algorithm>

#include "millrace/coco/evaluation/overlaps.h"

namespace millrace::coco {
namespace {

/// The detections of each image; those of image i begin at first[i].
struct ByImage {
  std::vector<ImagePairs::Found> found;
  std::vector<std::size_t> first;

  ByImage(const Matches& matches, std::size_t images)
      : found(matches.detections.size()), first(images + 1, 0) {
    for (const Scored& one : matches.detections) ++first[one.image + 1];
    for (std::size_t i = 1; i <= images; ++i) first[i] += first[i - 1];
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < matches.detections.size(); ++i) {
      const Scored& one = matches.detections[i];
      found[next[one.image]++] = {static_cast<std::uint32_t>(i), one.category};
    }
  }
};

}  // namespace

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
  for (std::size_t o = 0; o < pairs.objects.size(); ++o) {
    if (pairs.objects[o].crowd && pairs.same_category(f, o) && pairs.overlap(f, o) >= kForeground) {
      return true;
    }
  }
  return false;
}

void for_each_image(const Dataset& truth, const Detections& detections, const Matches& matches,
                    const EvaluateOptions& options,
                    const std::function<void(const ImagePairs&)>& body) {
  const ByImage by_image(matches, truth.images.size());
  tbb::parallel_for(std::size_t{0}, truth.images.size(), [&](std::size_t i) {
    const Image& image = truth.images[i];
    ImagePairs pairs;
    pairs.found.assign(by_image.found.begin() + static_cast<std::ptrdiff_t>(by_image.first[i]),
                       by_image.found.begin() + static_cast<std::ptrdiff_t>(by_image.first[i + 1]));
    std::stable_sort(pairs.found.begin(), pairs.found.end(), [&](const auto& a, const auto& b) {
      return score_fall(matches.detections[a.match].score) <
             score_fall(matches.detections[b.match].score);
    });
    for (std::uint32_t a = image.first; a < image.first + image.count; ++a) {
      const int category = truth.category_index(truth.annotations[a].category_id);
      pairs.objects.push_back(
          {a, static_cast<std::uint32_t>(category), !counts(truth.annotations[a], /*area=*/0)});
    }
    std::stable_sort(pairs.objects.begin(), pairs.objects.end(),
                     [](const auto& a, const auto& b) { return a.category < b.category; });
    if (options.class_agnostic) {
      for (auto& object : pairs.objects) object.category = 0;
    }
    if (pairs.found.empty() && pairs.objects.empty()) return;

    std::vector<std::uint32_t> found;
    std::vector<const Annotation*> objects;
    for (const auto& one : pairs.found) {
      found.push_back(matches.detections[one.match].detection);
    }
    for (const auto& one : pairs.objects) objects.push_back(&truth.annotations[one.annotation]);
    if (options.iou == IouType::box)
      box_overlaps(detections, found, objects, pairs.overlaps);
    else
      mask_overlaps(detections, found, objects, truth, image, kBackground, pairs.overlaps);
    body(pairs);
  });
}

}  // namespace millrace::coco
