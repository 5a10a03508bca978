#include "millrace/cli/inspect/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <opencv2/imgproc.hpp>

namespace millrace::cli {
namespace {

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
