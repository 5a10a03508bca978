// Generated and real samples for tests of stages, and helpers for masks.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "millrace/coco/masks/mask_extent.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/geometry.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace::testing {

/// Returns a sample with one box. The values of each pixel encode the pixel's position.
inline Sample sample_of(int width, int height, Box box = {1, 2, 3, 4}) {
  Sample sample;
  sample.image_id = 7;
  sample.path = "picture.jpg";
  sample.width = width;
  sample.height = height;
  sample.image.pixels().create(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      sample.image.pixels().at<cv::Vec3b>(y, x) = {static_cast<std::uint8_t>(x + 1),
                                                   static_cast<std::uint8_t>(y + 1), 255};
  sample.objects = {{box}, {0}, {0}, {coco::Segmentation{}}};
  return sample;
}

/// Returns every `step`-th training image of coco_mini without its pixels.
inline std::vector<Sample> real_samples(int step = 1) {
  const auto options = coco_mini();
  const DetectionSource source(open_split(options, options.train), /*filter_empty=*/false);
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < source.size(); i += step) samples.push_back(source[i]);
  return samples;
}

/// Returns every `step`-th training image of coco_mini with its pixels.
inline std::vector<Sample> real_photos(int step) {
  auto samples = real_samples(step);
  for (auto& sample : samples) sample = Decode{}(std::move(sample));
  return samples;
}

inline double iou(const coco::Rle& a, const coco::Rle& b) {
  const std::uint8_t crowd = 0;
  return coco::mask_iou({&a, 1}, {&b, 1}, {&crowd, 1})[0];
}

inline bool same(const Instances& a, const Instances& b) {
  return a.boxes == b.boxes && a.classes == b.classes && a.crowd == b.crowd &&
         a.segmentations == b.segmentations;
}

inline bool same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && a.type() == b.type() && cv::norm(a, b, cv::NORM_INF) == 0;
}

/// Returns object `i` alone.
inline Instances only(const Instances& objects, std::size_t i) {
  return {{objects.boxes[i]}, {objects.classes[i]}, {objects.crowd[i]}, {objects.segmentations[i]}};
}

/// Expects what holds for objects after every stage: members of equal length, boxes and polygons
/// inside the image, no empty boxes or shapes, masks of the image's size.
inline void expect_sound(const Instances& objects, cv::Size image) {
  ASSERT_EQ(objects.classes.size(), objects.size());
  ASSERT_EQ(objects.crowd.size(), objects.size());
  ASSERT_EQ(objects.segmentations.size(), objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const auto& box = objects.boxes[i];
    EXPECT_TRUE(box.x1 >= 0 && box.y1 >= 0 && box.x2 <= static_cast<float>(image.width) &&
                box.y2 <= static_cast<float>(image.height) && box.area() > 0)
        << i << ": " << box.x1 << " " << box.y1 << " " << box.x2 << " " << box.y2;
    const auto& shape = objects.segmentations[i];
    if (const auto* mask = std::get_if<coco::Rle>(&shape)) {
      ASSERT_EQ(mask->width, static_cast<std::uint32_t>(image.width));
      ASSERT_EQ(mask->height, static_cast<std::uint32_t>(image.height));
      EXPECT_GT(coco::area(*mask), 0U);
    } else if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
      ASSERT_FALSE(polygons->empty());
      for (const auto& polygon : *polygons) {
        ASSERT_GE(polygon.size(), 6U);
        for (std::size_t k = 0; k < polygon.size(); ++k) {
          ASSERT_GE(polygon[k], 0);
          ASSERT_LE(polygon[k], k % 2 == 0 ? image.width : image.height);
        }
      }
    }
  }
}

}  // namespace millrace::testing
