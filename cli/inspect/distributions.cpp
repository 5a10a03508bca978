#include "millrace/cli/inspect/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace millrace::cli {
namespace {

std::vector<double> longer_sides(const SeenData& data) {
  std::vector<double> result;
  for (const auto& image : data.images)
    result.push_back(std::max(image.original.width, image.original.height));
  return result;
}

/// Returns a distribution whose bins end with the one that contains the maximum.
Distribution distribution(std::string id, std::string title, std::string unit,
                          const std::vector<double>& values, std::vector<double> edges) {
  const double max = values.empty() ? 0 : std::ranges::max(values);
  while (edges.size() > 2 && edges.back() >= max) edges.pop_back();
  return {
      .id = std::move(id),
      .title = std::move(title),
      .unit = std::move(unit),
      .histogram = histogram(values, std::move(edges)),
      .max = max,
      .median = quantile(values, 0.5),
      .meaning =
          values.empty()
              ? "No values."
              : fmt::format(
                    "10 % are at most {:.4g}, half are at most {:.4g}, 90 % are at most {:.4g}.",
                    quantile(values, .1), quantile(values, .5), quantile(values, .9))};
}

std::vector<double> best_ious(const SplitView& split) {
  std::vector<double> result;
  for (std::size_t i = 0; i < split.coverage.size(); ++i)
    if (!split.data.objects[i].crowd) result.push_back(double{split.coverage[i].best_iou});
  return result;
}

}  // namespace

std::vector<Distribution> distributions(const SplitView& split) {
  if (split.data.images.empty()) return {};
  std::vector<Distribution> all;
  all.push_back(distribution(
      "object_size", "Sizes of objects", "pixels as seen: square root of the box's area",
      values(split.data, &SeenObject::size),
      {0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536}));
  all.push_back(distribution("object_ratio", "Aspect ratios of objects", "height / width",
                             values(split.data, &SeenObject::ratio),
                             {0, .1, .2, .33, .5, .67, .8, 1, 1.25, 1.5, 2, 3, 5, 10}));
  all.push_back(distribution(
      "objects_per_image", "Objects per image", "objects", objects_per_image(split.data),
      {0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500}));
  ++all.back().max;  // whole numbers: the last bin extends to the next one
  all.push_back(distribution("image_size", "Sizes of images", "longer side of the file in pixels",
                             longer_sides(split.data),
                             {0, 128, 192, 256, 320, 480, 640, 800, 1024, 1280, 1600, 2048, 3072,
                              4096, 6144, 8192, 12288}));
  if (split.coverage.empty()) return all;
  std::vector<double> edges;
  for (int k = 0; k <= 10; ++k) edges.push_back(k / 10.);
  all.push_back(distribution("anchor_iou", "Best anchor of each object", "IoU", best_ious(split),
                             std::move(edges)));
  all.back().max = 1;
  return all;
}

BoundedBins bounded_bins(const Distribution& one) {
  BoundedBins bins{one.histogram.edges, {}};
  for (std::size_t i = 1; i < one.histogram.counts.size(); ++i)
    bins.counts.push_back(static_cast<std::int64_t>(one.histogram.counts[i]));
  bins.edges.push_back(std::max(one.max, bins.edges.back()));
  return bins;
}

}  // namespace millrace::cli
