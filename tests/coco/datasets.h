// Annotation files with random objects, and comparison of data sets.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "millrace/coco/data/records.h"

namespace millrace::coco {

/// The sections of an annotation file. Objects have polygons, run lengths or no shape; some have an
/// area or keypoints. Records are in random order; white space between them depends on the seed.
struct RandomFile {
  std::string images, annotations, categories;

  explicit RandomFile(unsigned seed, int count = 300) {
    std::mt19937 random(seed);
    const std::string gap = seed % 2 ? " " : "";
    const auto list = [&](std::vector<std::string> records) {
      std::shuffle(records.begin(), records.end(), random);
      return fmt::format("[{}]", fmt::join(records, "," + gap));
    };
    std::vector<std::string> all;
    const int side = 20 + static_cast<int>(seed % 9), made = count / 7 + 1;
    for (int i = 0; i < made; ++i)
      all.push_back(fmt::format(
          R"({{"id":{0},"width":{1},"height":{1},"file_name":"{0}\u00e4.jpg"{2}}})", i * 3, side,
          i % 4 ? "" : fmt::format(R"(,"neg_category_ids":[{}])", 1 + i % 5)));
    images = list(all);
    all.clear();
    for (int k = 1; k <= 5; ++k) all.push_back(fmt::format(R"({{"name":"c{0}","id":{0}}})", k));
    categories = list(all);
    all.clear();
    for (int i = 0; i < count; ++i) {
      std::string shape;
      const auto number = [&] { return static_cast<double>(random() % 2000) / 100; };
      if (i % 5 == 0)
        shape = fmt::format(R"({{"size":[{0},{0}],"counts":[3,4,{1}]}})", side, side * side - 7);
      if (i % 5 == 1) shape = "null";
      for (unsigned part = 1 + random() % 3; i % 5 > 1 && part > 0; --part) {
        shape += shape.empty() ? "[" : "," + gap;
        shape += fmt::format("[{},{},{},{},{},{}]", number(), number(), number(), number(),
                             number(), number());
        if (part == 1) shape += "]";
      }
      all.push_back(fmt::format(
          R"({{"segmentation":{}{},{}{}"bbox":[{},{},{},{}],"image_id":{},"category_id":{},"iscrowd":{},"id":{}}})",
          gap, shape, i % 3 ? fmt::format(R"("area":{},)", number()) : "",
          i % 4 ? "" : fmt::format(R"("keypoints":[{},{},2],)", number(), number()), number(),
          number(), number(), number(), random() % static_cast<unsigned>(made) * 3,
          1 + random() % 5, i % 5 == 0, 7 * i));
    }
    annotations = list(all);
  }

  std::string json() const {
    return fmt::format(
        R"({{"info": {{"year": 2017}}, "images": {}, "annotations": {}, "categories": {}}})",
        images, annotations, categories);
  }
};

inline void expect_equal(const Dataset& a, const Dataset& b) {
  const auto bytes = [](auto array) {
    return std::string_view(reinterpret_cast<const char*>(array.data()), array.size_bytes());
  };
  each_array([&](auto x, auto y) { EXPECT_TRUE(bytes(x) == bytes(y)); }, a, b);
  ASSERT_EQ(a.annotations.size(), b.annotations.size());
  for (std::size_t i = 0; i < a.annotations.size(); ++i)
    ASSERT_EQ(a.segmentation(a.annotations[i]), b.segmentation(b.annotations[i]));
}

}  // namespace millrace::coco
