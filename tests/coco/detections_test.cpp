// Results files round-trip, and invalid ones are reported.
#include "millrace/coco/data/detections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <random>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/readers.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using ::testing::HasSubstr;
using testing::Scratch;

/// Returns detections, each with at least one of box, mask and keypoints.
std::vector<Detection> random_detections(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<Detection> made(count);
  for (auto& one : made) {
    one.image_id = static_cast<std::int64_t>(random() >> 1);
    one.category_id = static_cast<std::int64_t>(random() % 90);
    one.score = std::generate_canonical<double, 53>(random);
    if (random() % 3 > 0)
      for (double& c : one.bbox.emplace())
        c = static_cast<double>(random()) / static_cast<double>(1 + random() % 1000000);
    if (!one.bbox || random() % 2) {
      const auto begin = static_cast<std::uint32_t>(random() % 2000),
                 length = 1 + static_cast<std::uint32_t>(random() % 400);
      one.mask = {60, 50, {begin, length, 3000 - begin - length}};
    }
    if (random() % 4 == 0)
      for (auto n = 3 * (1 + random() % 5); n > 0; --n)
        one.keypoints.push_back(std::generate_canonical<double, 53>(random) * 100);
    if (one.bbox && !one.keypoints.empty() && one.mask.counts.empty()) one.bbox.reset();
  }
  return made;
}

void expect_equal(const Detections& read, std::span<const Detection> expected) {
  ASSERT_EQ(read.size(), expected.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    ASSERT_EQ(read[i].image_id, expected[i].image_id);
    ASSERT_EQ(read[i].category_id, expected[i].category_id);
    ASSERT_EQ(read[i].score, expected[i].score);
    ASSERT_EQ(read[i].has_bbox, expected[i].bbox.has_value());
    ASSERT_EQ(read[i].bbox, expected[i].bbox.value_or(Xywh{}));
    ASSERT_EQ(read.mask(i), expected[i].mask);
    const auto keypoints = read.keypoints_of(read[i]);
    ASSERT_EQ(std::vector(keypoints.begin(), keypoints.end()), expected[i].keypoints);
  }
}

TEST(Detections, RoundTripExactly) {
  const auto written = random_detections(500);
  const Scratch scratch;
  const auto file = scratch / "results.json";
  write_detections(file, Detections(written));
  expect_equal(read_detections(file), written);
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 4);
  for (const std::size_t bytes : {1, 64, 300, 5000, 1000000})
    for (const int threads : {1, 4})
      tbb::task_arena(threads).execute([&] {
        const auto read = read_result_pieces(InputFile(file), bytes, nullptr);
        ASSERT_TRUE(read) << bytes;
        expect_equal(*read, written);
      });
}

TEST(Detections, CombineParts) {
  const auto written = random_detections(60);
  Detections all;
  for (std::size_t i = 0; i < written.size(); i += 20)
    all.append_partial(Detections(std::span(written).subspan(i, 20)).partial());
  expect_equal(all, written);
  std::string part = all.partial();
  part.back() ^= 0x40;  // an end offset of keypoints
  EXPECT_THROW(all.append_partial(part), Error);
  expect_equal(all, written);
}

TEST(Detections, RejectAmbiguousPieces) {
  const std::string one = R"({"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 1})";
  const auto read = [](const std::string& json) {
    return read_result_pieces(InputFile(Scratch().file("results.json", json)), 8, nullptr);
  };
  EXPECT_EQ(read("[" + one + ", " + one + "]\n")->size(), 2U);
  EXPECT_FALSE(read("[" + one + ", " + one + "] 7"));
  EXPECT_FALSE(read("[" + one + ", " + one));
  EXPECT_FALSE(read("{}"));
  // A "}, {" within a string or a nested value does not separate records.
  std::string noted = one;
  noted.insert(1, R"("note": "a }, {", "more": [{}, {}], )");
  EXPECT_FALSE(read("[" + noted + "]"));
  EXPECT_EQ(read_detections(Scratch().file("results.json", "[" + noted + "]")).size(), 1U);
}

TEST(Detections, ConvertPolygonsToRunLengths) {
  Records set;
  set.add_image(1, "a.jpg", 8, 6);
  const auto images = assemble(set, "made");
  const Scratch scratch;
  const auto file =
      scratch.file("results.json",
                   R"([{"image_id": 1, "category_id": 1, "score": 1, "bbox": [0, 0, 1, 1],
           "segmentation": [[1, 1, 5, 1, 5, 4], [2, 3, 7, 3, 7, 5, 2, 5]]},
          {"image_id": 1, "category_id": 1, "score": 1, "segmentation": {"size": [6, 8], "counts": [3, 4, 41]}}])");
  const auto read = read_detections(file, images.get());
  EXPECT_EQ(
      read.mask(0),
      from_polygons(std::vector<Polygon>{{1, 1, 5, 1, 5, 4}, {2, 3, 7, 3, 7, 5, 2, 5}}, 6, 8));
  EXPECT_EQ(read.mask(1), (Rle{6, 8, {3, 4, 41}}));
  EXPECT_EQ(read.mask_of(read[1]).extent.pixels, 4U);
  EXPECT_EQ(read.mask_of(read[1]).extent.box, bounding_box(read.mask(1)));
}

TEST(Detections, WriteEmptyArrayAndRejectNonFiniteNumbers) {
  const Scratch scratch;
  const auto file = scratch / "results.json";
  write_detections(file, {});
  EXPECT_TRUE(read_detections(file).empty());
  const Detection one{1, 1, Xywh{}, std::numeric_limits<double>::infinity(), {}};
  EXPECT_THROW(write_detections(file, Detections({&one, 1})), Error);
}

TEST(Detections, ReportLocationOfErrors) {
  const std::string one = R"([{"image_id": 1, "category_id": 1, "score": 1)";
  const std::pair<std::string, std::string> faults[] = {
      {"", "is empty"},
      {"{}", "byte 0: not JSON"},
      {"[{}]", "line 1, byte 1: detections[0]: 'image_id' is missing"},
      {"[\n7]", "line 2, byte 2: detections[0] "},
      {one + "}]", "detections[0]: 'bbox', 'segmentation' and 'keypoints'"},
      {R"([{"image_id": 1, "category_id": 1, "score": "high"}])",
       "byte 44: detections[0]: 'score' is not a"},
      {one + R"(, "segmentation": [[1,2,3,4,5,6]]}])", "image 1 is unknown"},
      {one + R"(, "segmentation": {"size": [1, 2], "counts": "1"}}])", "add up to 1"},
      {one + R"(, "keypoints": [1,2,2,4]}])", "'keypoints' has 4 numbers"},
      {one + R"(, "keypoints": [1,"a",2]}])", "'keypoints' is not a"},
      {one + R"(, "bbox": [1,2,3,4]},)", "truncated"}};
  for (const auto& [json, told] : faults) {
    const Scratch scratch;
    const auto file = scratch.file("results.json", json);
    EXPECT_THAT(testing::message_of([&] { read_detections(file); }), HasSubstr(told)) << json;
  }
}

}  // namespace
}  // namespace millrace::coco
