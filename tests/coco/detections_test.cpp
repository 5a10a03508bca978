// Results files: what is written reads back the same, and faults are told.
#include "coco/detections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "base/errors.h"
#include "base/files.h"
#include "coco/records.h"

namespace millrace::coco {
namespace {

using ::testing::HasSubstr;

/// A file name that vanishes with the test.
class Scratch {
 public:
  explicit Scratch(std::string_view text = "") { write_file_atomically(path_, text); }
  ~Scratch() { std::filesystem::remove(path_); }
  operator const std::filesystem::path&() const { return path_; }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() /
      ("millrace-" + std::to_string(::getpid()) + "-" + std::to_string(count_++) + ".json");
  static inline int count_ = 0;
};

std::string message_of(std::string_view json) {
  const Scratch file(json);
  try {
    read_detections(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Detections, ReadBackToTheBit) {
  std::mt19937_64 random(1);
  std::vector<Detection> written(500);
  for (auto& one : written) {
    one.image_id = static_cast<std::int64_t>(random() >> 1);
    one.category_id = static_cast<std::int64_t>(random() % 90);
    one.score = std::generate_canonical<double, 53>(random);
    one.has_bbox = random() % 3 > 0;
    if (one.has_bbox) {
      for (double& c : one.bbox)
        c = static_cast<double>(random()) / static_cast<double>(1 + random() % 1000000);
    }
    if (!one.has_bbox || random() % 2) {
      const auto begin = static_cast<std::uint32_t>(random() % 2000),
                 length = 1 + static_cast<std::uint32_t>(random() % 400);
      one.mask = {60, 50, {begin, length, 3000 - begin - length}};
    }
  }
  const Scratch file;
  write_detections(file, Detections(written));
  const auto read = read_detections(file);
  ASSERT_EQ(read.size(), written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].image_id, written[i].image_id);
    EXPECT_EQ(read[i].category_id, written[i].category_id);
    EXPECT_EQ(read[i].score, written[i].score);
    EXPECT_EQ(read[i].has_bbox, written[i].has_bbox);
    EXPECT_EQ(std::memcmp(read[i].bbox, written[i].bbox, sizeof read[i].bbox), 0);
    EXPECT_EQ(read.mask(i), written[i].mask);
  }
}

TEST(Detections, PolygonsAndNumbersBecomeRunLengths) {
  Records set;
  set.add_image(1, "a.jpg", 8, 6);
  const auto images = assemble(set, "made");
  const Scratch file(
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

TEST(Detections, NoneIsAnEmptyArray) {
  const Scratch file;
  write_detections(file, {});
  EXPECT_TRUE(read_detections(file).empty());
}

TEST(Detections, NumbersThatJsonLacksAreRefused) {
  Detection one{1, 1, {}, true, std::numeric_limits<double>::infinity(), {}};
  EXPECT_THROW(write_detections(std::filesystem::temp_directory_path() / "never.json",
                                Detections({&one, 1})),
               Error);
}

TEST(Detections, FaultsAreToldWithTheirPlace) {
  EXPECT_THAT(message_of(""), HasSubstr("the file is empty"));
  EXPECT_THAT(message_of("{}"), HasSubstr("byte 0: not JSON of the expected form"));
  EXPECT_THAT(message_of("[{}]"),
              HasSubstr("line 1, byte 1: detections[0]: 'image_id' is missing"));
  EXPECT_THAT(message_of("[\n7]"), HasSubstr("line 2, byte 2: detections[0] is not an object"));
  EXPECT_THAT(message_of(R"([{"image_id": 1, "category_id": 1, "score": 1}])"),
              HasSubstr("detections[0]: neither 'bbox' nor 'segmentation' is there"));
  EXPECT_THAT(message_of(R"([{"image_id": 1, "category_id": 1, "score": "high"}])"),
              HasSubstr("byte 44: detections[0]: 'score' is not a finite number"));
  EXPECT_THAT(
      message_of(
          R"([{"image_id": 1, "category_id": 1, "score": 1, "segmentation": [[1,2,3,4,5,6]]}])"),
      HasSubstr("polygons need the size of their image"));
  EXPECT_THAT(
      message_of(
          R"([{"image_id": 1, "category_id": 1, "score": 1, "segmentation": {"size": [1, 2], "counts": "1"}}])"),
      HasSubstr("the runs add up to 1"));
  EXPECT_THAT(message_of(R"([{"image_id": 1, "category_id": 1, "bbox": [1,2,3,4], "score": 1},)"),
              HasSubstr("truncated"));
}

}  // namespace
}  // namespace millrace::coco
