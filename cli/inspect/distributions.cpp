#include "millrace/cli/inspect/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>
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

constexpr int kChartWidth = 800, kChartHeight = 420;  // pixels
const cv::Scalar kGround(255, 255, 255), kInk(23, 26, 31), kSoft(93, 104, 117), kBars(37, 102, 184),
    kLines(221, 226, 232);

void put_text(cv::Mat& picture, const std::string& text, cv::Point at, double size,
              const cv::Scalar& colour, bool centred = false) {
  constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
  int below = 0;
  const auto extent = cv::getTextSize(text, kFont, size, 1, &below);
  if (centred) at.x -= extent.width / 2;
  cv::putText(picture, text, at, kFont, size, colour, 1, cv::LINE_AA);
}

void draw_chart(cv::Mat picture, const Distribution& one) {
  constexpr int kLeft = 76, kTop = 50, kBelow = 64, kRight = 24;
  const auto [edges, counts] = bounded_bins(one);
  put_text(picture, one.title, {kLeft, 30}, 0.7, kInk);
  const int width = picture.cols - kLeft - kRight, height = picture.rows - kTop - kBelow;
  const auto most = std::max<std::int64_t>(1, counts.empty() ? 1 : std::ranges::max(counts));
  for (const double part : {0., .5, 1.}) {
    const int y = kTop + height - static_cast<int>(part * height);
    cv::line(picture, {kLeft, y}, {kLeft + width, y}, part == 0 ? kSoft : kLines);
    put_text(picture, fmt::format("{:.0f}", part * static_cast<double>(most)), {8, y + 5}, 0.42,
             kSoft);
  }
  const auto bins = static_cast<int>(counts.size());
  const auto place = [&](int bin) { return kLeft + width * bin / std::max(1, bins); };
  for (int i = 0; i < bins; ++i) {
    const auto tall = static_cast<int>(static_cast<double>(counts[static_cast<std::size_t>(i)]) /
                                       static_cast<double>(most) * height);
    if (tall > 0)
      cv::rectangle(picture, {place(i) + 1, kTop + height - tall},
                    {place(i + 1) - 2, kTop + height - 1}, kBars, cv::FILLED);
  }
  const int every = std::max(1, (bins + 12) / 12);
  for (int i = 0; i <= bins; i += every)
    put_text(picture, fmt::format("{:.4g}", edges[static_cast<std::size_t>(i)]),
             {place(i), kTop + height + 20}, 0.42, kSoft, /*centred=*/true);
  put_text(picture, one.unit, {kLeft + width / 2, kTop + height + 46}, 0.46, kSoft,
           /*centred=*/true);
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

cv::Mat histogram_picture(std::span<const Distribution> all) {
  const auto count = std::max(1, static_cast<int>(all.size()));
  const int columns = count > 1 ? 2 : 1, rows = (count + 1) / 2;
  cv::Mat picture(rows * kChartHeight, columns * kChartWidth, CV_8UC3, kGround);
  for (int i = 0; i < static_cast<int>(all.size()); ++i)
    draw_chart(
        picture(cv::Rect(i % 2 * kChartWidth, i / 2 * kChartHeight, kChartWidth, kChartHeight)),
        all[static_cast<std::size_t>(i)]);
  return picture;
}

}  // namespace millrace::cli
