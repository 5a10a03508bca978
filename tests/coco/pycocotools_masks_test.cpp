// Compares masks with those of an installed pycocotools: they are equal bit for bit.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "millrace/coco/masks/masks.h"
#include "tests/coco/random_masks.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

using nlohmann::json;
using testing::random_bitmap;
using testing::random_polygon;

std::vector<double> corners(const std::vector<double>& box) {
  const double x1 = box[0], y1 = box[1], x2 = x1 + box[2], y2 = y1 + box[3];
  return {x1, y1, x1, y2, x2, y2, x2, y1};
}

/// Returns an unusual polygon for which the arithmetic of pycocotools' C code is still defined:
/// tiny, distant, degenerate, with repeated points or with corners on whole or half pixels.
Polygon odd_polygon(std::mt19937& random, double width, double height) {
  Polygon polygon = random_polygon(random, width, height);
  const auto kind = random() % 8;
  for (double& c : polygon) {
    if (kind == 0) c = std::round(c);               // pixel corners
    if (kind == 1) c = std::floor(c * 2) / 2;       // pixel corners and centres
    if (kind == 2) c = std::floor(c * 10) / 10;     // tenths of pixels
    if (kind == 3) c = c / 20 + 3;                  // a few pixels large
    if (kind == 4 && random() % 3 == 0) c *= 2000;  // far beyond the image
    if (kind == 5) c = polygon[random() % 2];       // lines and points
    if (kind == 6) c -= 1.5 * width;                // outside the image
  }
  if (kind == 7) polygon.insert(polygon.end(), polygon.begin(), polygon.begin() + 4);
  return polygon;
}

class Pycocotools : public ::testing::Test {
 protected:
  /// Runs pycocotools on `cases` and returns its results.
  json answers(const json& cases) const {
    const auto in = scratch_.file("cases.json", cases.dump()), out = scratch_ / "answers.json";
    EXPECT_EQ(millrace::testing::run_python("tests/coco/pycocotools_answers.py '" + in.string() +
                                            "' '" + out.string() + "'"),
              0);
    return json::parse(std::ifstream(out));
  }

  static void expect_equal(const Rle& mask, const json& expected) {
    ASSERT_EQ((json{mask.height, mask.width}), expected.at("size"));
    ASSERT_EQ(encode_counts(mask), expected.at("counts").get<std::string>());
    if (!expected.contains("area")) return;
    ASSERT_EQ(area(mask), expected.at("area").get<std::uint64_t>());
    const Box box = bounding_box(mask);
    ASSERT_EQ((std::vector<double>{box.x1, box.y1, box.width(), box.height()}),
              expected.at("bbox").get<std::vector<double>>());
  }

  millrace::testing::Scratch scratch_;
  std::mt19937 random_{1};
};

TEST_F(Pycocotools, MatchesMasks) {
  MILLRACE_NEEDS_PYTHON("pycocotools");
  json cases;
  std::map<std::string, std::vector<Rle>> masks;  // by kind
  std::uniform_real_distribution<double> at(-20, 90);
  const auto side = [&] { return static_cast<std::uint32_t>(1 + random_() % 80); };
  for (int i = 0; i < 1500; ++i) {
    const auto height = side(), width = side();
    std::vector<Polygon> parts(1 + random_() % 3);
    for (auto& part : parts) part = odd_polygon(random_, width, height);
    masks["polygons"].push_back(from_polygons(parts, height, width));
    cases["polygons"].push_back({{"parts", parts}, {"height", height}, {"width", width}});
    const std::vector<double> box = {at(random_), at(random_), at(random_), at(random_)};
    masks["boxes"].push_back(from_polygons(std::vector<Polygon>{corners(box)}, height, width));
    cases["boxes"].push_back({{"box", box}, {"height", height}, {"width", width}});
  }
  for (int i = 0; i < 400; ++i) {
    const auto height = side(), width = side();
    Rle runs{height, width, {}};
    for (std::uint32_t left = height * width; left > 0; left -= runs.counts.back())
      runs.counts.push_back(std::min<std::uint32_t>(left, random_() % (height * width / 3 + 2)));
    masks["runs"].push_back(runs);
    cases["runs"].push_back({{"size", {height, width}}, {"counts", runs.counts}});
    const auto pixels = random_bitmap(random_, height, width);
    masks["bitmaps"].push_back(encode(pixels.data(), height, width));
    cases["bitmaps"].push_back({{"pixels", pixels}, {"height", height}, {"width", width}});
  }
  const json expected = answers(cases);
  for (const auto& [kind, made] : masks) {
    ASSERT_EQ(expected[kind].size(), made.size());
    for (std::size_t i = 0; i < made.size(); ++i) {
      SCOPED_TRACE(kind + " " + std::to_string(i));
      expect_equal(made[i], expected[kind][i]);
      ASSERT_EQ(decode_counts(encode_counts(made[i]), made[i].height, made[i].width), made[i]);
    }
  }
}

TEST_F(Pycocotools, MatchesUnionsIntersectionsAndIous) {
  MILLRACE_NEEDS_PYTHON("pycocotools");
  json cases;
  struct Group {
    std::vector<Rle> found, truth;
    std::vector<std::uint8_t> crowd;
  };
  std::vector<Group> groups(300);
  for (auto& [found, truth, crowd] : groups) {
    const auto height = static_cast<std::uint32_t>(1 + random_() % 60),
               width = static_cast<std::uint32_t>(1 + random_() % 60);
    const auto fill = [&](std::vector<Rle>& masks) {
      for (unsigned n = 1 + random_() % 5; n > 0; --n) {
        const Polygon polygon = odd_polygon(random_, width, height);
        masks.push_back(random_() % 2
                            ? from_polygons({&polygon, 1}, height, width)
                            : encode(random_bitmap(random_, height, width).data(), height, width));
      }
    };
    fill(found), fill(truth);
    for (std::size_t i = 0; i < truth.size(); ++i) crowd.push_back(random_() % 3 == 0);
    const auto texts = [](const std::vector<Rle>& masks) {
      json all = json::array();
      for (const Rle& mask : masks) all.push_back(encode_counts(mask));
      return all;
    };
    cases["groups"].push_back({{"size", {height, width}},
                               {"found", texts(found)},
                               {"truth", texts(truth)},
                               {"crowd", crowd}});
  }
  const json expected = answers(cases)["groups"];
  ASSERT_EQ(expected.size(), groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    SCOPED_TRACE(i);
    const auto& [found, truth, crowd] = groups[i];
    expect_equal(merge(found), expected[i]["union"]);
    expect_equal(intersect(found), expected[i]["shared"]);
    ASSERT_EQ(mask_iou(found, truth, crowd), expected[i]["iou"].get<std::vector<double>>());
  }
}

}  // namespace
}  // namespace millrace::coco
