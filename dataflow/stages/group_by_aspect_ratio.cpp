#include "millrace/dataflow/stages/group_by_aspect_ratio.h"

#include <algorithm>
#include <limits>

#include "millrace/dataflow/detection/detection_stages.h"

namespace millrace {
namespace {

Stage grouping(const Config& table, const DetectionContext& context) {
  auto key = read_options<GroupByAspectRatio>(table, {"type"});
  if (!context.only_checked) key.fit(*context.source);
  return group_stage<Sample, Sample>(std::string(key.kName), key, key.groups(),
                                     static_cast<std::size_t>(key.batch_size));
}

MILLRACE_REGISTER(detection_stages().add<GroupByAspectRatio>(
    std::string(GroupByAspectRatio::kName), "groups images of similar shape into batches",
    {grouping}));

constexpr std::size_t kMostCuts = 256;  // cuts between groups that are tried; the work is quadratic
                                        // in it

/// Images with neighbouring ratios; sides are multiples of the shorter side.
struct Run {
  double ratio = 0;             // of the widest image
  double width = 1;             // of the widest image: the maximum of the run
  double height = 1;            // of the narrowest image: the maximum of the run
  double images = 0, area = 0;  // sums
};

/// Returns at most kMostCuts runs of neighbouring ratios; equal ratios are in one run.
std::vector<Run> runs_of(std::span<const cv::Size> shapes) {
  std::vector<double> ratios;
  ratios.reserve(shapes.size());
  for (const auto& shape : shapes)
    ratios.push_back(static_cast<double>(shape.width) / shape.height);
  std::ranges::sort(ratios);

  const auto least = (ratios.size() + kMostCuts - 1) / kMostCuts;
  std::vector<Run> runs;
  for (const double ratio : ratios) {
    const double width = std::max(1.0, ratio), height = std::max(1.0, 1 / ratio);
    const bool full = runs.empty() || (runs.back().images >= static_cast<double>(least) &&
                                       runs.back().ratio < ratio);
    if (full) runs.push_back({.height = height});
    auto& run = runs.back();
    run.ratio = ratio;
    run.width = width;
    run.images += 1;
    run.area += width * height;
  }
  return runs;
}

}  // namespace

std::vector<double> ratio_bounds(std::span<const cv::Size> shapes, std::size_t buckets) {
  const auto runs = runs_of(shapes);
  const auto n = runs.size();
  // least[b][j] is the padding of runs 0 .. j-1 in at most b + 1 groups, from[b][j] the first run
  // of the last group.
  std::vector least(buckets, std::vector<double>(n + 1, std::numeric_limits<double>::max()));
  std::vector from(buckets, std::vector<std::size_t>(n + 1, 0));
  for (std::size_t b = 0; b < buckets; ++b) {
    least[b][0] = 0;
    for (std::size_t j = 1; j <= n; ++j) {
      double images = 0, area = 0;
      for (auto i = j; i-- > 0;) {  // the last group has runs i .. j-1
        images += runs[i].images;
        area += runs[i].area;
        if (b == 0 && i > 0) continue;
        const double before = i == 0 ? 0 : least[b - 1][i];
        const double padding = before + images * runs[j - 1].width * runs[i].height - area;
        if (padding < least[b][j]) {
          least[b][j] = padding;
          from[b][j] = i;
        }
      }
    }
  }
  std::vector<double> bounds;
  for (auto b = buckets, j = n; b-- > 0 && j > 0; j = from[b][j])
    if (const auto i = from[b][j]; i > 0) bounds.push_back((runs[i - 1].ratio + runs[i].ratio) / 2);
  std::ranges::reverse(bounds);
  return bounds;
}

void GroupByAspectRatio::fit(const Source<Sample>& source) {
  constexpr std::int64_t kShapesSeen = 4096;
  if (buckets == 0) return;
  const auto step = std::max<std::int64_t>(1, source.size() / kShapesSeen);
  std::vector<cv::Size> shapes;  // shapes known before decoding
  for (std::int64_t i = 0; i < source.size(); i += step) {
    const auto sample = source.about(i);
    if (sample.width > 0) shapes.emplace_back(sample.width, sample.height);
  }
  bounds = ratio_bounds(shapes, static_cast<std::size_t>(buckets));
}

std::size_t GroupByAspectRatio::operator()(const Sample& sample) const {
  const double width = sample.width, height = sample.height;
  return static_cast<std::size_t>(std::ranges::count_if(
      bounds, [ratio = width / height](double bound) { return ratio > bound; }));
}

}  // namespace millrace
