// Makes folders of images and labels, and compares data sets.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "millrace/coco/picture/encode.h"
#include "millrace/tools/formats/format.h"
#include "tests/support/scratch.h"

namespace millrace::formats {

/// Returns a grey PNG of 8 bits, or 16 bits if a value is above 255. With a palette (red, green,
/// blue per entry), the values are indices into it.
inline std::string png_of_values(int width, int height, std::vector<std::uint16_t> values,
                                 const std::vector<std::uint8_t>& palette = {}) {
  png_image head = {};
  head.version = PNG_IMAGE_VERSION;
  head.width = static_cast<png_uint_32>(width);
  head.height = static_cast<png_uint_32>(height);
  head.colormap_entries = static_cast<png_uint_32>(palette.size() / 3);
  const bool is_wide = std::ranges::max(values) > 255;
  head.format = !palette.empty() ? PNG_FORMAT_RGB_COLORMAP
                : is_wide        ? PNG_FORMAT_LINEAR_Y
                                 : PNG_FORMAT_GRAY;
  const std::vector<std::uint8_t> narrow(values.begin(), values.end());
  const void* pixels = is_wide ? static_cast<const void*>(values.data()) : narrow.data();
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(head), '\0');
  png_alloc_size_t size = bytes.size();
  EXPECT_NE(png_image_write_to_memory(&head, bytes.data(), &size, 0, pixels, 0, palette.data()), 0);
  bytes.resize(size);
  return bytes;
}

/// A temporary folder that a test fills.
class Folder {
 public:
  Folder& file(const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories((scratch_ / name).parent_path());
    scratch_.file(name, bytes);
    return *this;
  }
  Folder& image(const std::string& name, int width, int height) {
    const cv::Mat pixels(height, width, CV_8UC3, cv::Scalar(90, 120, 40));
    return file(name,
                name.ends_with(".png") ? coco::encode_png(pixels) : coco::encode_jpeg(pixels, 80));
  }
  /// Adds a grey PNG from rows of digits such as "0112".
  Folder& mask(const std::string& name, const std::vector<std::string>& rows) {
    std::vector<std::uint16_t> values;
    for (const auto& row : rows)
      for (const char one : row) values.push_back(static_cast<std::uint16_t>(one - '0'));
    return file(name, png_of_values(static_cast<int>(rows[0].size()), static_cast<int>(rows.size()),
                                    std::move(values)));
  }

  const std::filesystem::path& path() const { return scratch_.path(); }
  Listing listing() const { return Listing(path()); }

  /// Reads the folder in its detected format.
  std::vector<Split> read() {
    const auto folder = listing();
    return detect_format(folder).format->read(folder, findings);
  }

  /// Returns a string such as "label-class 2" for each kind of finding, sorted by name.
  std::vector<std::string> found() const {
    std::vector<std::string> kinds;
    for (const auto& one : findings.sorted())
      kinds.push_back(fmt::format("{} {}", one.kind.name, one.count));
    std::ranges::sort(kinds);
    return kinds;
  }
  /// Returns the examples of a kind of finding as one string.
  std::string examples(std::string_view kind) const {
    std::string text;
    for (const auto& one : findings.sorted())
      if (one.kind.name == kind)
        for (const auto& example : one.examples) text += example.text() + "\n";
    return text;
  }

  coco::Findings findings{20};

 private:
  testing::Scratch scratch_;
};

/// Returns "person 10 20 30 40" for each object: class and box as x, y, width, height.
inline std::vector<std::string> boxes_of(const Split& split, std::string_view image = {}) {
  std::vector<std::string> boxes;
  const auto& data = *split.data;
  for (const auto& one : data.images) {
    if (!image.empty() && data.text(one.file_name) != image) continue;
    for (const auto& object : data.objects(one)) {
      const auto& category =
          data.categories[static_cast<std::size_t>(data.category_index(object.category_id))];
      boxes.push_back(fmt::format("{} {:g} {:g} {:g} {:g}", data.text(category.name),
                                  object.bbox[0], object.bbox[1], object.bbox[2], object.bbox[3]));
    }
  }
  return boxes;
}

inline std::vector<std::string> names_of_images(const Split& split) {
  std::vector<std::string> names;
  for (const auto& image : split.data->images)
    names.emplace_back(split.data->text(image.file_name));
  return names;
}

inline std::vector<std::string> names_of_classes(const Split& split) {
  std::vector<std::string> names;
  for (const auto& one : split.data->categories) names.emplace_back(split.data->text(one.name));
  return names;
}

}  // namespace millrace::formats
