// Compares the evaluator with an installed pycocotools: all values are equal bit for bit.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "millrace/coco/evaluation/evaluate.h"
#include "tests/coco/random_masks.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

using millrace::testing::Scratch;
using nlohmann::json;

/// Random annotations and results. Objects have polygons or run lengths (encoded or as numbers);
/// some are crowds, have areas at the limits of area ranges, or have ids that are 0, negative or
/// above 2^53. Detections are near objects or anywhere; some have equal scores, unknown categories
/// or images without objects. Their shapes are of all kinds that pycocotools accepts.
class RandomSet {
 public:
  json truth, found = json::array();

  RandomSet(unsigned seed, bool with_boxes) : random_(seed), with_boxes_(with_boxes) {
    const std::int64_t large_ids = seed % 4 == 0 ? (std::int64_t{1} << 54) + 1 : 0;
    for (int k = 0; k < 4; ++k)
      truth["categories"].push_back({{"id", large_ids + k * k}, {"name", std::to_string(k)}});
    truth["annotations"] = json::array();
    for (int i = 0; i < 10; ++i) {
      const int height = 60 + below(80), width = 60 + below(80);
      const json image = {{"id", large_ids + 7 * ((3 * i) % 10)},
                          {"file_name", "x"},
                          {"height", height},
                          {"width", width}};
      truth["images"].push_back(image);
      for (int n = below(7); n > 0; --n) add_object(image, large_ids);
      for (int n = below(6); n > 0; --n)
        add_detection(image, random_box(image), category(large_ids));
    }
    if (found.empty()) add_detection(truth["images"][0], {1, 1, 5, 5}, 1);
    std::shuffle(found.begin(), found.end(), random_);
  }

 private:
  using Box4 = std::array<double, 4>;

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  /// Returns one of `count` category ids; the fifth is unknown.
  std::int64_t category(std::int64_t first, int count = 5) {
    const int k = below(count);
    return first + k * k;
  }
  Box4 random_box(const json& image) {
    const double width = image["width"], height = image["height"];
    const auto part = [&] { return below(100) / 100.; };
    const double x = part() * width * .8, y = part() * height * .8;
    return {x, y, 1 + part() * (width - x - 1), 1 + part() * (height - y - 1)};
  }
  static std::vector<double> outline(const Box4& b) {
    return {b[0], b[1], b[0] + b[2], b[1], b[0] + b[2], b[1] + b[3], b[0], b[1] + b[3]};
  }
  /// Returns a segmentation. `kind`: 0 = polygons, 1 = encoded run lengths, 2 = run lengths as
  /// numbers.
  json shape(const Box4& box, const json& image, int kind) {
    json polygons = {outline(box)};
    if (below(3) == 0) polygons.push_back(outline({box[0] / 2, box[1], 3.3, 7.7}));
    if (kind == 0) return polygons;
    const Rle mask =
        from_polygons(polygons.get<std::vector<Polygon>>(), image["height"].get<std::uint32_t>(),
                      image["width"].get<std::uint32_t>());
    const json size = {mask.height, mask.width};
    if (kind == 1) return {{"size", size}, {"counts", encode_counts(mask)}};
    return {{"size", size}, {"counts", mask.counts}};
  }

  void add_object(const json& image, std::int64_t large_ids) {
    const Box4 box = random_box(image);
    const int id = static_cast<int>(truth["annotations"].size());
    const std::int64_t category_id = category(large_ids, 4);
    const int kind = below(3);
    const double areas[] = {1024, 9216, 0, box[2] * box[3], box[2] * box[3]};
    json one = {{"id", id == 3 ? -5 : large_ids + id},
                {"image_id", image["id"]},
                {"category_id", category_id},
                {"bbox", box},
                {"area", areas[below(5)]},
                {"iscrowd", below(6) == 0},
                {"segmentation", shape(box, image, kind)}};
    if (below(8) == 0) one["ignore"] = 1;  // overwritten by pycocotools
    truth["annotations"].push_back(one);
    for (int n = below(4); n > 0; --n) {
      Box4 near = box;
      if (below(3) > 0)
        for (double& c : near) c = std::max(c + (below(100) - 50) / 20., 0.5);
      add_detection(image, near, below(5) == 0 ? category(large_ids) : category_id);
    }
  }

  void add_detection(const json& image, const Box4& box, std::int64_t category_id) {
    json one = {
        {"image_id", image["id"]}, {"category_id", category_id}, {"score", below(12) / 10. - .1}};
    if (with_boxes_) one["bbox"] = box;
    // With a box, any kind of shape or none is allowed; without a box, only encoded run lengths.
    const int kind = with_boxes_ ? below(4) : 1;
    if (kind < 3) one["segmentation"] = shape(box, image, kind);
    found.push_back(one);
  }

  std::mt19937 random_;
  bool with_boxes_;
};

TEST(PycocotoolsMetrics, MatchExactly) {
  MILLRACE_NEEDS_PYTHON("pycocotools");
  const Scratch scratch;
  json cases = json::array();
  for (unsigned seed = 0; seed < 42; ++seed) {
    const RandomSet set(seed, seed % 3 > 0);
    const auto gt = scratch.file(std::to_string(seed) + "gt.json", set.truth.dump());
    const auto dt = scratch.file(std::to_string(seed) + "dt.json", set.found.dump());
    const json limits[] = {{1, 10, 100}, {100, 2, 1}, {1, 2, 3, 100}, {3}, {2, 2, 100}};
    for (const std::string iou : {"bbox", "segm", "boundary"})
      cases.push_back(json{{"gt", gt.string()},
                           {"dt", dt.string()},
                           {"iou", iou},
                           {"use_cats", seed % 5 == 0 ? 0 : 1},
                           {"max_dets", limits[seed % 7 < 5 ? seed % 7 : 0]}});
  }
  const auto in = scratch.file("cases.json", cases.dump()), out = scratch / "answers.json";
  ASSERT_EQ(millrace::testing::run_python("tests/coco/pycocotools_answers.py '" + in.string() +
                                          "' '" + out.string() + "'"),
            0);
  const json answers = json::parse(std::ifstream(out));
  ASSERT_EQ(answers.size(), cases.size());
  const std::map<std::string, IouType> ious = {
      {"bbox", IouType::box}, {"segm", IouType::mask}, {"boundary", IouType::boundary}};
  int informative_cases = 0;  // cases with some, but not all objects found
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const json &one = cases[i], &expected = answers[i];
    SCOPED_TRACE(one.dump());
    const auto truth = read_dataset(one["gt"].get<std::string>());
    const auto found = read_detections(one["dt"].get<std::string>(), truth.get());
    const auto result =
        evaluate(*truth, found,
                 {.iou = ious.at(one["iou"]),
                  .area = area_from(found),
                  .class_agnostic = one["use_cats"] == 0,
                  .max_detections = one["max_dets"].get<std::vector<std::uint32_t>>()});
    ASSERT_EQ(result.recall, expected["recall"].get<std::vector<double>>());
    ASSERT_EQ(result.precision, expected["precision"].get<std::vector<double>>());
    ASSERT_EQ(result.scores, expected["scores"].get<std::vector<double>>());
    if (expected.contains("stats")) {
      const auto stats = expected["stats"].get<std::vector<double>>();
      ASSERT_EQ(result.stats, stats);
      informative_cases += stats[8] > 0 && stats[8] < 1;
    }
  }
  EXPECT_GT(informative_cases, 50);
}

}  // namespace
}  // namespace millrace::coco
