// Made-up objects and what a made-up detector found, and evaluations held against each other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "millrace/coco/data/records.h"
#include "millrace/coco/evaluation/evaluate.h"

namespace millrace::coco {

/// A detection that lies exactly on an object.
inline Detection on(const Annotation& object, double score) {
  return {object.image_id, object.category_id, std::to_array(object.bbox), score, {}};
}

/// Random boxes over several images and categories, every score its own.
struct RandomResults {
  Records truth;
  std::vector<Detection> found;

  explicit RandomResults(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> at(0, 60), extent(5, 110);
    for (std::int64_t k = 1; k <= 3; ++k) truth.add_category(k, "c");
    for (std::int64_t i = 1; i <= 12; ++i) {
      truth.add_image(i, "i.jpg", 200, 200);
      for (unsigned n = random() % 8; n > 0; --n) {
        const auto id = static_cast<std::int64_t>(truth.annotations.size()) + 1;
        Annotation one{id, i, 1 + static_cast<std::int64_t>(random() % 3)};
        for (int c = 0; c < 4; ++c) one.bbox[c] = c < 2 ? at(random) : extent(random);
        one.area = one.bbox[2] * one.bbox[3];
        one.crowd = random() % 8 == 0;
        truth.add(one);
        for (unsigned d = random() % 4; d > 0; --d) {
          found.push_back(on(one, 0));
          for (double& c : *found.back().bbox) c += at(random) / 10;
        }
      }
    }
    std::shuffle(found.begin(), found.end(), random);
    for (std::size_t i = 0; i < found.size(); ++i) found[i].score = static_cast<double>(i) / 1000;
  }

  /// Gives every box its pixels as a mask, with a hole in those of detections.
  void add_masks() {
    const auto filled = [](const auto& box) {
      const double x1 = box[0], y1 = box[1], x2 = x1 + box[2], y2 = y1 + box[3];
      return from_polygons(std::vector<Polygon>{{x1, y1, x2, y1, x2, y2, x1, y2}}, 200, 200);
    };
    for (auto& one : truth.annotations) one.shape = truth.add_mask(filled(one.bbox));
    for (auto& one : found) {
      const Xywh& box = *one.bbox;
      one.mask = difference(filled(box), filled(Xywh{box[0] + 10, box[1] + 10, 20, 20}));
    }
  }
};

inline void expect_equal(const Evaluation& a, const Evaluation& b) {
  EXPECT_EQ(a.stats, b.stats);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.recall, b.recall);
  EXPECT_EQ(a.scores, b.scores);
}

}  // namespace millrace::coco
