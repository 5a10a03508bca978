// What is found wrong with the records and objects of an annotation file: each kind alone, in an
// otherwise sound set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/random.h"
#include "millrace/doctor/check_objects.h"
#include "millrace/doctor/check_records.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"

namespace millrace::coco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// "error box-outside 2: the first example", one a kind.
std::vector<std::string> lines(const Findings& findings) {
  const char* kSeverities[] = {"error", "warning", "note"};
  std::vector<std::string> result;
  for (const auto& one : findings.sorted())
    result.push_back(std::string(kSeverities[static_cast<int>(one.kind.severity)]) + " " +
                     std::string(one.kind.name) + " " + std::to_string(one.count) +
                     (one.examples.empty() ? "" : ": " + one.examples[0].text()));
  return result;
}

/// Two images of 100 x 80 pixels with two sound objects each, which a test makes unsound.
class Checks : public ::testing::Test {
 protected:
  Checks() {
    json_["images"] = Json::array();
    json_["annotations"] = Json::array();
    json_["categories"] = {{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "dog"}}};
    for (int image = 1; image <= 2; ++image) {
      json_["images"].push_back({{"id", image},
                                 {"file_name", std::to_string(image) + ".jpg"},
                                 {"width", 100},
                                 {"height", 80}});
      for (int k = 0; k < 2; ++k) json_["annotations"].push_back(sound(10 * image + k, image, k));
    }
  }

  static Json sound(int id, int image, int k) {
    const int x = 10 + 40 * k;
    return {{"id", id},
            {"image_id", image},
            {"category_id", 1 + k},
            {"bbox", {x, 20, 30, 40}},
            {"area", 1200},
            {"iscrowd", 0},
            {"segmentation", {{x, 20, x + 30, 20, x + 30, 60, x, 60}}}};
  }

  Json& object(std::size_t i) { return json_["annotations"][i]; }

  /// The first object gets another box; it has no shape then.
  void set_box(Json box) {
    object(0)["bbox"] = std::move(box);
    for (auto& one : json_["annotations"]) one.erase("segmentation");
  }

  void write(const std::string& text) { std::ofstream(file_, std::ios::binary) << text; }

  /// All findings of the file as it is.
  std::vector<std::string> check_file(std::size_t max_examples = 3) {
    Findings findings(max_examples);
    if (const auto data = check_records(file_, findings)) {
      std::vector<std::int64_t> ids;
      for (const auto& category : data->categories) ids.push_back(category.id);
      usable_ = check_objects(*data, ids, /*with_shapes=*/true, findings);
      objects_ = data->annotations.size();
    }
    return lines(findings);
  }
  std::vector<std::string> check() {
    write(json_.dump());
    return check_file();
  }

  Json json_;
  testing::Scratch scratch_;
  fs::path file_ = scratch_ / "a.json";
  std::size_t usable_ = 0, objects_ = 0;
};

TEST_F(Checks, ASoundSetHasNoFindings) {
  EXPECT_THAT(check(), IsEmpty());
  EXPECT_EQ(usable_, 2U);
  EXPECT_EQ(objects_, 4U);
}

TEST_F(Checks, AFileThatIsNoJsonIsOneFinding) {
  write("hello");
  EXPECT_THAT(check_file(),
              ElementsAre(AllOf(StartsWith("error file-unreadable 1: "), HasSubstr("byte 0"))));
}

TEST_F(Checks, ATruncatedFileIsOneFindingWithItsLength) {
  const auto text = json_.dump();
  write(text.substr(0, 300));
  EXPECT_THAT(check_file(), ElementsAre(AllOf(StartsWith("error file-unreadable 1: "),
                                              HasSubstr("byte 300"), HasSubstr("truncated"))));
}

TEST_F(Checks, AMissingFileIsOneFinding) {
  EXPECT_THAT(check_file(), ElementsAre(StartsWith("error file-unreadable 1: ")));
}

TEST_F(Checks, ASectionThatIsMissingIsTold) {
  json_.erase("categories");
  EXPECT_THAT(check(), ElementsAre(AllOf(StartsWith("error file-unreadable 1: "),
                                         HasSubstr("'categories' is missing"))));
}

TEST_F(Checks, ReadingGoesOnBehindEachRecordThatIsWrong) {
  object(0)["bbox"] = {1, 2, -3, 4};
  object(1)["segmentation"] = {{1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}};
  object(2)["segmentation"] = {{"size", {80, 100}}, {"counts", {1, 2}}};
  object(3).erase("image_id");
  json_["annotations"].push_back(sound(50, 1, 0));
  json_["images"].push_back({{"id", 7}, {"file_name", "7.jpg"}, {"width", 0}, {"height", 1}});
  json_["categories"].push_back({{"id", 3}});
  const auto found = check();
  ASSERT_EQ(found.size(), 5U) << ::testing::PrintToString(found);
  EXPECT_THAT(found[0], AllOf(StartsWith("error box-unreadable 1: annotation 10: annotations[0]"),
                              HasSubstr("negative size: -3 x 4")));
  EXPECT_THAT(found[1], AllOf(StartsWith("error mask-unreadable 1: annotation 20"),
                              HasSubstr("do not add up to 80 x 100")));
  EXPECT_THAT(found[2], AllOf(StartsWith("error record-unreadable 3: image 7: images[2], byte "),
                              HasSubstr("'width' is 0")));
  EXPECT_THAT(found[3], AllOf(StartsWith("error shape-unreadable 1: annotation 11"),
                              HasSubstr("polygon 1 has 4 numbers")));
  EXPECT_EQ(found[4], "note image-empty 1: image 2 (2.jpg)");
  EXPECT_EQ(objects_, 1U) << "the one that is sound, with its own shape";
}

TEST_F(Checks, WhatIsNoFiniteNumberIsUnreadable) {
  auto text = json_.dump();
  const auto at = text.find("[10,20,30,40]");
  write(text.replace(at, 13, "[10,NaN,30,40]"));
  EXPECT_THAT(check_file(), ElementsAre(AllOf(StartsWith("error box-unreadable 1: annotation 10"),
                                              HasSubstr("not a finite number"))));
  write(text.replace(at, 14, "[10,1e999,30,40]"));
  EXPECT_THAT(check_file(), ElementsAre(StartsWith("error box-unreadable 1: annotation 10")));
}

TEST_F(Checks, TheFaultyRecordsLeaveTheRestAsItIs) {
  for (int i = 0; i < 200; ++i) {
    auto one = sound(100 + i, 1, 0);
    if (i % 3 == 0) one["segmentation"] = {{1, 2, 3, 4, 5, 6}, {1}};
    if (i % 7 == 0) one["iscrowd"] = "no";
    one["bbox"][0] = 10 + i * 0.001;
    json_["annotations"].push_back(one);
  }
  const auto found = check();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0], StartsWith("error record-unreadable 29: annotation 100"));
  EXPECT_THAT(found[1], StartsWith("error shape-unreadable 57: annotation 103"));
  EXPECT_EQ(objects_, 204U - 29 - 57);
}

TEST_F(Checks, AFileHasErrorsExactlyWhereTheReaderRefusesIt) {
  const auto whole = json_.dump();
  Rng rng{7};
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    auto text = whole;
    for (auto changes = 1 + rng.below(3); changes > 0; --changes) {
      constexpr std::string_view kBytes = "0123456789-.e,:[]{}\" tnfa\xff";
      const auto at = rng.below(text.size());
      if (rng.chance(0.3))
        text.erase(at, rng.below(6));
      else
        text[at] = kBytes[rng.below(kBytes.size())];
    }
    write(text);
    bool is_refused = false;
    try {
      read_dataset(file_);
    } catch (const Error&) {
      is_refused = true;
    }
    Findings findings(1);
    check_records(file_, findings);
    ASSERT_EQ(!lines(findings).empty(), is_refused) << text;
    refused += is_refused;
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 950);
}

TEST_F(Checks, AnIdThatIsThereTwiceIsTold) {
  object(2)["id"] = 10;
  EXPECT_THAT(check(), ElementsAre("error annotation-id-twice 1: annotation 10, image 2"));
  EXPECT_EQ(objects_, 3U);
  object(2)["id"] = 20;
  json_["categories"].push_back({{"id", 2}, {"name", "fox"}});
  EXPECT_THAT(check(), ElementsAre("error category-id-twice 1: category 2"));
  json_["categories"].erase(2);
  json_["images"].push_back(json_["images"][1]);
  EXPECT_THAT(check(), ElementsAre("error image-id-twice 1: image 2"));
}

TEST_F(Checks, AnnotationsOfNothingAreTold) {
  object(0)["image_id"] = 99;
  object(1)["category_id"] = 77;
  EXPECT_THAT(check(), ElementsAre("error category-unknown 1: annotation 11, image 1: there is no "
                                   "category with id 77",
                                   "error image-unknown 1: annotation 10, image 99: there is no "
                                   "image with id 99",
                                   "note image-empty 1: image 1 (1.jpg)"));
}

TEST_F(Checks, AMaskOfAnotherSizeThanItsImageIsTold) {
  object(0)["segmentation"] = {{"size", {100, 80}}, {"counts", {10, 100, 7890}}};
  EXPECT_THAT(check(), ElementsAre("error mask-size 1: annotation 10, image 1: its mask is 100 x "
                                   "80, its image 80 x 100 (height x width)"));
}

TEST_F(Checks, AnIdOfZeroIsTold) {
  object(3)["id"] = 0;
  EXPECT_THAT(check(), ElementsAre("warning annotation-id-zero 1: annotation 0, image 2 (2.jpg)"));
}

TEST_F(Checks, ABoxWithoutAreaIsTold) {
  for (const auto& box : {Json{10, 20, 0, 40}, Json{10, 20, 30, 0}, Json{100, 20, 30, 40},
                          Json{-40, 20, 30, 40}, Json{10, 20, 1e-9, 40}}) {
    set_box(box);
    EXPECT_THAT(check(), ElementsAre(StartsWith("error box-unusable 1: annotation 10, image 1 "
                                                "(1.jpg): box [")))
        << box;
  }
  object(1)["bbox"] = {10, 20, 0, 0};
  EXPECT_THAT(check(), ElementsAre(StartsWith("error box-unusable 2"),
                                   "note image-empty 1: image 1 (1.jpg)"));
}

TEST_F(Checks, ABoxBeyondItsImageIsToldWithHowFarItReaches) {
  set_box({90, 20, 15, 40});
  EXPECT_THAT(check(),
              ElementsAre("warning box-outside 1: annotation 10, image 1 (1.jpg): box [90, 20, 15, "
                          "40] in 100 x 80: 5 pixels beyond the right"));
  set_box({-3, 20, 15, 40});
  EXPECT_THAT(check(), ElementsAre(HasSubstr("3 pixels beyond the left")));
  set_box({10, -2.5, 15, 40});
  EXPECT_THAT(check(), ElementsAre(HasSubstr("2.5 pixels beyond the top")));
  set_box({10, 20, 15, 62});
  EXPECT_THAT(check(), ElementsAre(HasSubstr("2 pixels beyond the bottom")));
  set_box({-0.5, 20, 15, 60.9});
  EXPECT_THAT(check(), IsEmpty()) << "as far as rounding explains";
}

TEST_F(Checks, ThinAndLongBoxesAreTold) {
  set_box({10, 20, 0.5, 2});
  EXPECT_THAT(check(), ElementsAre(StartsWith("warning box-thin 1: annotation 10")));
  set_box({10, 20, 2, 30});
  EXPECT_THAT(check(), ElementsAre(StartsWith("note box-elongated 1: annotation 10")));
}

TEST_F(Checks, ABoxIsThinWhereLessThanAPixelOfItIsInside) {
  set_box({99.5, 20, 1.3, 30});
  EXPECT_THAT(check(), ElementsAre(StartsWith("warning box-thin 1: annotation 10")));
  EXPECT_EQ(usable_, 2U) << "the other object of the image can be learned";
  set_box({10.3, 20.7, 1, 1});
  EXPECT_THAT(check(), IsEmpty()) << "a whole pixel, wherever it lies";
}

TEST_F(Checks, AnObjectToBeIgnoredIsTold) {
  object(0)["ignore"] = 1;
  object(1)["ignore"] = true;
  object(2)["ignore"] = 0;
  object(3)["ignore"] = nullptr;
  EXPECT_THAT(check(), ElementsAre("note image-empty 1: image 1 (1.jpg)",
                                   "note object-ignored 2: annotation 10, image 1 (1.jpg)"));
  EXPECT_EQ(usable_, 1U);
}

TEST_F(Checks, AShapeWithoutAreaIsTold) {
  object(0)["segmentation"] = {{10, 20, 40, 60, 10, 20}};
  EXPECT_THAT(check(), ElementsAre("error shape-empty 1: annotation 10, image 1 (1.jpg)"));
  object(0)["segmentation"] = {{"size", {80, 100}}, {"counts", {8000}}};
  EXPECT_THAT(check(), ElementsAre("error shape-empty 1: annotation 10, image 1 (1.jpg)",
                                   StartsWith("note mask-not-crowd 1")));
  object(0)["segmentation"] = {{210, 20, 240, 20, 240, 60}};
  EXPECT_THAT(check(), ElementsAre("error shape-empty 1: annotation 10, image 1 (1.jpg)",
                                   "warning shape-outside 1: annotation 10, image 1 (1.jpg): 140 "
                                   "pixels beyond the right"));
}

TEST_F(Checks, AShapeBetweenThePixelsIsTold) {
  object(0)["segmentation"] = {{10, 20.1, 40, 20.1, 40, 20.2, 10, 20.2}};
  EXPECT_THAT(check(),
              ElementsAre("warning shape-without-pixels 1: annotation 10, image 1 (1.jpg)"));
}

TEST_F(Checks, AnObjectWithoutAShapeIsToldWhereOthersHaveOne) {
  object(0).erase("segmentation");
  EXPECT_THAT(check(), ElementsAre("warning shape-missing 1: annotation 10, image 1 (1.jpg)"));
  for (auto& one : json_["annotations"]) one.erase("segmentation");
  EXPECT_THAT(check(), IsEmpty());
}

TEST_F(Checks, BoxAndShapeThatDisagreeAreTold) {
  object(0)["bbox"] = {10, 20, 34, 40};
  EXPECT_THAT(check(), ElementsAre("warning box-off-shape 1: annotation 10, image 1 (1.jpg): 4 "
                                   "pixels off, IoU 0.88"));
  object(0)["bbox"] = {50, 20, 30, 40};
  EXPECT_THAT(check(), ElementsAre("error box-apart-from-shape 1: annotation 10, image 1 (1.jpg): "
                                   "40 pixels off, IoU 0.00"));
  object(0)["bbox"] = {12, 22, 28, 39};
  EXPECT_THAT(check(), IsEmpty()) << "as far as taste explains";
}

TEST_F(Checks, AnAreaThatIsNotThatOfTheShapeIsTold) {
  object(0)["area"] = 900;
  EXPECT_THAT(check(), ElementsAre("warning area-off-shape 1: annotation 10, image 1 (1.jpg): area "
                                   "900, of the shape 1200"));
  object(0)["area"] = -1;
  EXPECT_THAT(check(), ElementsAre(StartsWith("warning area-not-positive 1: annotation 10")));
  object(0).erase("area");
  EXPECT_THAT(check(), IsEmpty()) << "the reader takes that of the shape";
}

TEST_F(Checks, UnusualCrowdFlagsAreNoted) {
  object(0)["iscrowd"] = 1;
  EXPECT_THAT(check(), ElementsAre("note crowd-polygon 1: annotation 10, image 1 (1.jpg)"));
  object(1)["iscrowd"] = 1;
  EXPECT_THAT(check(), ElementsAre(StartsWith("note crowd-polygon 2"),
                                   "note image-empty 1: image 1 (1.jpg)"));
  EXPECT_EQ(usable_, 1U);
}

TEST_F(Checks, OfACrowdsShapeOnlyThatThereIsOneCounts) {
  object(0)["iscrowd"] = 1;
  object(0)["area"] = 7;
  object(0)["segmentation"] = {{"size", {80, 100}}, {"counts", {0, 400, 7600}}};
  EXPECT_THAT(check(), IsEmpty());
  object(0)["segmentation"] = {{"size", {80, 100}}, {"counts", {8000}}};
  EXPECT_THAT(check(), ElementsAre("warning crowd-empty 1: annotation 10, image 1 (1.jpg)"));
}

TEST_F(Checks, ShapesThatNobodyLearnsAreLeftAlone) {
  object(0)["segmentation"] = {{10, 20, 40, 60, 10, 20}};
  write(json_.dump());
  Findings findings(3);
  const auto data = check_records(file_, findings);
  check_objects(*data, std::vector<std::int64_t>{1, 2}, /*with_shapes=*/false, findings);
  EXPECT_THAT(lines(findings), IsEmpty());
}

TEST_F(Checks, AnObjectThatIsThereTwiceIsTold) {
  auto again = object(0);
  again["id"] = 30;
  json_["annotations"].push_back(again);
  EXPECT_THAT(check(), ElementsAre("warning object-twice 1: annotation 30, image 1 (1.jpg): as "
                                   "annotation 10"));
  json_["annotations"][4]["category_id"] = 2;
  EXPECT_THAT(check(), IsEmpty()) << "of another category it may be so";
}

TEST_F(Checks, ExamplesAreFewAndCountsWhole) {
  for (int i = 0; i < 500; ++i) {
    json_["images"].push_back(
        {{"id", 1000 + i}, {"file_name", std::to_string(i)}, {"width", 9}, {"height", 9}});
  }
  write(json_.dump());
  Findings findings(4);
  const auto data = check_records(file_, findings);
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 8);
  for (const int threads : {1, 2, 3, 8}) {
    auto mine = findings.none();
    tbb::task_arena(threads).execute([&] {
      check_objects(*data, std::vector<std::int64_t>{1, 2}, true, mine);
    });
    const auto found = mine.sorted();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].count, 500U);
    ASSERT_EQ(found[0].examples.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_EQ(found[0].examples[i].image, 1000 + static_cast<int>(i)) << threads;
  }
}

TEST_F(Checks, ObjectsOfOtherCategoriesDoNotCount) {
  object(0)["bbox"] = {10, 20, 0, 0};
  write(json_.dump());
  Findings findings(3);
  const auto data = check_records(file_, findings);
  EXPECT_EQ(check_objects(*data, std::vector<std::int64_t>{2}, true, findings), 2U);
  EXPECT_THAT(lines(findings), IsEmpty());
}

TEST(CheckObjects, FindsNoErrorInRealAnnotations) {
  MILLRACE_NEEDS_DATA("coco_mini");
  for (const char* split : {"train2017", "val2017"}) {
    Findings findings(3);
    const auto data = check_records(testing::data_folder() / "coco_mini/annotations" /
                                        ("instances_" + std::string(split) + ".json"),
                                    findings);
    ASSERT_TRUE(data);
    std::vector<std::int64_t> ids;
    for (const auto& category : data->categories) ids.push_back(category.id);
    check_objects(*data, ids, /*with_shapes=*/true, findings);
    for (const auto& one : findings.sorted())
      EXPECT_EQ(one.kind.severity, Severity::note)
          << one.kind.name << ": " << one.examples[0].text();
  }
}

}  // namespace
}  // namespace millrace::coco
