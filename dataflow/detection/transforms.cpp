#include "millrace/dataflow/detection/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <utility>

#include "millrace/coco/masks/run_writer.h"
#include "millrace/dataflow/detection/geometry.h"

namespace millrace {
namespace {

/// Rows begin .. end-1 of a column.
struct Stretch {
  std::uint32_t begin = 0, end = 0;
};

/// Returns the stretches inside the mask, column by column.
std::vector<std::vector<Stretch>> columns_of(const coco::Rle& mask) {
  std::vector<std::vector<Stretch>> columns(mask.width);
  std::uint64_t pixel = 0;
  bool inside = false;
  for (const auto count : mask.counts) {
    for (const auto end = pixel + count; inside && pixel < end;) {
      const auto column = pixel / mask.height;
      const auto top = column * mask.height;
      const auto last = std::min(end, top + mask.height);
      columns[column].push_back(
          {static_cast<std::uint32_t>(pixel - top), static_cast<std::uint32_t>(last - top)});
      pixel = last;
    }
    if (!inside) pixel += count;
    inside = !inside;
  }
  return columns;
}

/// Returns for each of `to` pixels the one of `from` that it samples, ascending.
std::vector<std::uint32_t> shown(std::uint32_t from, std::uint32_t to, Sampling sampling) {
  std::vector<std::uint32_t> pixels(to);
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  for (std::uint32_t i = 0; i < to; ++i)
    pixels[i] = sampling == Sampling::centres
                    ? static_cast<std::uint32_t>((std::uint64_t{2} * i + 1) * from /
                                                 (std::uint64_t{2} * to))
                    : std::min(static_cast<std::uint32_t>(static_cast<float>(i) * scale), from - 1);
  return pixels;
}

}  // namespace

coco::Rle mirrored(const coco::Rle& mask, Direction direction) {
  auto columns = columns_of(mask);
  if (direction == Direction::horizontal) {
    std::ranges::reverse(columns);
  } else {
    for (auto& column : columns) {
      std::ranges::reverse(column);
      for (auto& rows : column) rows = {mask.height - rows.end, mask.height - rows.begin};
    }
  }
  coco::RunWriter out(mask.height, mask.width);
  std::uint32_t top = 0;
  for (const auto& column : columns) {
    for (const auto& rows : column) out.add(top + rows.begin, top + rows.end);
    top += mask.height;
  }
  return std::move(out).finish();
}

coco::Rle resized(const coco::Rle& mask, std::uint32_t width, std::uint32_t height,
                  Sampling sampling) {
  const auto columns = columns_of(mask);
  const auto shown_columns = shown(mask.width, width, sampling);
  const auto shown_rows = shown(mask.height, height, sampling);
  const auto first_row =
      [&](std::uint32_t row) {  // the first new row that samples `row` or a later one
        return static_cast<std::uint32_t>(std::ranges::lower_bound(shown_rows, row) -
                                          shown_rows.begin());
      };
  coco::RunWriter out(height, width);
  for (std::uint32_t i = 0; i < width; ++i)
    for (const auto& rows : columns[shown_columns[i]])
      out.add(i * height + first_row(rows.begin), i * height + first_row(rows.end));
  return std::move(out).finish();
}

coco::Rle warped(const coco::Rle& mask, const cv::Matx23d& matrix, cv::Size size) {
  const auto width = static_cast<std::uint32_t>(size.width);
  const auto height = static_cast<std::uint32_t>(size.height);
  coco::RunWriter out(height, width);
  const Box from = coco::bounding_box(mask);
  if (from.area() == 0) return std::move(out).finish();

  const auto left = static_cast<int>(from.x1), top = static_cast<int>(from.y1);
  const auto columns = static_cast<int>(from.width()), rows = static_cast<int>(from.height());
  std::vector<std::uint8_t> bitmap(static_cast<std::size_t>(columns) * rows);
  coco::decode(coco::window(mask, left, top, rows, columns), bitmap.data());
  const auto back = inverse(matrix);
  const auto inside = [&](std::uint32_t x, std::uint32_t y) {
    const auto point = back * cv::Vec3d(x + 0.5, y + 0.5, 1);
    const double column = std::floor(point[0]) - left, row = std::floor(point[1]) - top;
    return column >= 0 && column < columns && row >= 0 && row < rows &&
           bitmap[static_cast<std::size_t>(row) * columns + static_cast<std::size_t>(column)] != 0;
  };

  const Box to = clipped(transformed(from, matrix), size);
  const auto first_row = static_cast<std::uint32_t>(to.y1);
  const auto last_row = static_cast<std::uint32_t>(std::ceil(to.y2));
  const auto last_column = static_cast<std::uint32_t>(std::ceil(to.x2));
  for (auto x = static_cast<std::uint32_t>(to.x1); x < last_column; ++x)
    for (auto y = first_row; y < last_row; ++y)
      if (inside(x, y)) out.add(x * height + y, x * height + y + 1);
  return std::move(out).finish();
}

void check_range(std::string_view stage, std::string_view low_name, double low,
                 std::string_view high_name, double high) {
  if (!(low <= high))
    throw std::invalid_argument(
        fmt::format("{}: {} = {} is above {} = {}", stage, low_name, low, high_name, high));
}

LazyImage& image_of(Sample& sample, std::string_view stage) {
  if (sample.image.empty())
    throw std::logic_error(std::string(stage) +
                           ": needs a decoded image; put the stage 'decode' in front of it");
  return sample.image;
}

cv::Mat& pixels(Sample& sample, std::string_view stage) { return image_of(sample, stage).pixels(); }

cv::Size fitted_size(cv::Size image, double width, double height) {
  const double scale = std::min(width / image.width, height / image.height);
  const auto side = [scale](int length) {
    return std::max(1, static_cast<int>(std::lround(scale * length)));
  };
  return {side(image.width), side(image.height)};
}

void resize(Sample& sample, cv::Size size, Sampling sampling, Resampling resampling) {
  const auto old = sample.image.size();
  if (size == old) return;

  sample.image.resize(size, resampling);
  const float scale_x = static_cast<float>(size.width) / static_cast<float>(old.width);
  const float scale_y = static_cast<float>(size.height) / static_cast<float>(old.height);
  resize(sample.objects, size.width, size.height, scale_x, scale_y, sampling);
  sample.scale_x *= scale_x;
  sample.scale_y *= scale_y;
}

void crop(Sample& sample, const cv::Rect& window, int fill, const Visibility& visibility) {
  auto& image = sample.image.pixels();
  const cv::Rect whole({0, 0}, image.size());
  if ((window & whole) == window) {
    image = image(window).clone();  // a view would keep the whole image in memory
  } else {
    cv::Mat canvas(window.size(), image.type(), cv::Scalar::all(fill));
    copy_overlap(image, -window.tl(), canvas);
    image = std::move(canvas);
  }
  crop(sample.objects, window, visibility);
}

void warp(Sample& sample, const cv::Matx23d& matrix, int fill, const Visibility& visibility,
          cv::Size size) {
  const auto back = inverse(matrix);
  // In OpenCV, pixel i has its centre at i; here at i + 1/2.
  cv::Matx23d from_centres = back;
  for (int row = 0; row < 2; ++row) from_centres(row, 2) += (back(row, 0) + back(row, 1)) / 2 - 0.5;
  cv::Mat moved;
  cv::warpAffine(sample.image.pixels(), moved, from_centres,
                 size.empty() ? sample.image.size() : size, cv::INTER_LINEAR | cv::WARP_INVERSE_MAP,
                 cv::BORDER_CONSTANT, cv::Scalar::all(fill));
  sample.image = std::move(moved);
  warp(sample.objects, matrix, sample.image.size(), visibility);
}

void copy_overlap(const cv::Mat& image, cv::Point corner, cv::Mat& canvas) {
  const auto target = cv::Rect(corner, image.size()) & cv::Rect({0, 0}, canvas.size());
  if (target.empty()) return;
  image(target - corner).copyTo(canvas(target));
}

}  // namespace millrace
