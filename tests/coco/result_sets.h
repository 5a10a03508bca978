// Small data sets with results, made by hand or at random.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/coco/data/detections.h"
#include "millrace/coco/data/records.h"
#include "millrace/coco/evaluation/matching.h"

namespace millrace::coco {

struct Rectangle {
  double x, y, width, height;
};

constexpr Rectangle kHere{0, 0, 100, 100}, kElsewhere{0, 150, 100, 100};  // do not overlap
constexpr double kClose = 1e-12;                                          // tolerance for rounding

/// Returns a detection with the image, category and box of an object.
inline Detection on(const Annotation& object, double score) {
  return {object.image_id, object.category_id, std::to_array(object.bbox), score, {}};
}

/// A data set of 300 x 300 images with ids from 1, and categories c1, c2, ... with ids 10, 20, ...
struct ResultSet {
  Records truth;
  std::vector<Detection> found;

  ResultSet(int images, int categories) {
    for (int i = 1; i <= images; ++i) truth.add_image(i, std::to_string(i) + ".jpg", 300, 300);
    for (int k = 1; k <= categories; ++k) truth.add_category(10 * k, "c" + std::to_string(k));
  }

  void object(int image, int category, Rectangle box, bool crowd = false) {
    const auto id = static_cast<std::int64_t>(truth.annotations.size()) + 1;
    const double right = box.x + box.width, bottom = box.y + box.height;
    const Polygon outline = {box.x, box.y, right, box.y, right, bottom, box.x, bottom};
    truth.add({.id = id,
               .image_id = image,
               .category_id = 10 * category,
               .bbox = {box.x, box.y, box.width, box.height},
               .area = box.width * box.height,
               .crowd = crowd},
              std::vector<Polygon>{outline});
  }

  void detection(int image, int category, Rectangle box, double score) {
    found.push_back({image, 10 * category, Xywh{box.x, box.y, box.width, box.height}, score, {}});
  }

  /// Adds a mask that fills the box to every object and detection; detection masks have a hole.
  void add_masks() {
    const auto filled = [](const auto& box) {
      const double x1 = box[0], y1 = box[1], x2 = x1 + box[2], y2 = y1 + box[3];
      return from_polygons(std::vector<Polygon>{{x1, y1, x2, y1, x2, y2, x1, y2}}, 300, 300);
    };
    for (auto& one : truth.annotations) one.shape = truth.add_mask(filled(one.bbox));
    for (auto& one : found) {
      const Xywh& box = *one.bbox;
      one.mask = difference(filled(box), filled(Xywh{box[0] + 10, box[1] + 10, 20, 20}));
    }
  }

  std::shared_ptr<const Dataset> data() const { return assemble(truth, "made"); }
};

struct Object {
  int category;
  Rectangle box;
  bool crowd = false;
};
struct Found {
  int category;
  Rectangle box;
  double score;
};

/// Returns a result set with one image and two categories.
inline ResultSet scene(const std::vector<Object>& objects, const std::vector<Found>& found) {
  ResultSet set(1, 2);
  for (const auto& [category, box, crowd] : objects) set.object(1, category, box, crowd);
  for (const auto& [category, box, score] : found) set.detection(1, category, box, score);
  return set;
}

inline void expect_equal(const Evaluation& a, const Evaluation& b) {
  EXPECT_EQ(a.stats, b.stats);
  EXPECT_EQ(a.precision, b.precision);
  EXPECT_EQ(a.recall, b.recall);
  EXPECT_EQ(a.scores, b.scores);
}

/// Returns random results: hits, shifted boxes, wrong classes, duplicates and false positives, with
/// distinct scores.
inline ResultSet random_results(std::uint64_t seed, int images = 30, int categories = 4,
                                bool crowds = true, double largest = 90) {
  ResultSet set(images, categories);
  Rng rng{seed};
  const auto category = [&] { return static_cast<int>(rng.between(1, categories)); };
  for (int i = 1; i <= images; ++i) {
    for (auto n = rng.below(8); n > 0; --n) {
      const Rectangle box{rng.uniform(0, 200), rng.uniform(0, 200), rng.uniform(10, largest),
                          rng.uniform(10, largest)};
      const int k = category();
      set.object(i, k, box, crowds && rng.chance(.1));
      for (auto d = rng.below(4); d > 0; --d) {
        const double by = rng.chance(.5) ? 2 : 20;
        set.detection(i, rng.chance(.7) ? k : category(),
                      {box.x + rng.uniform(-by, by), box.y + rng.uniform(-by, by),
                       box.width * rng.uniform(.7, 1.4), box.height * rng.uniform(.7, 1.4)},
                      rng.uniform());
      }
    }
    for (auto n = rng.below(3); n > 0; --n)
      set.detection(i, category(), {rng.uniform(0, 200), rng.uniform(0, 200), 30, 30},
                    rng.uniform());
  }
  return set;
}

/// Returns random results for twelve images, with objects in every area range.
inline ResultSet mixed_results(std::uint64_t seed) {
  return random_results(seed, 12, 4, true, 130);
}

}  // namespace millrace::coco
