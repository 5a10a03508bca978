// Faults in the records and objects of an annotation file, each tested alone in an otherwise valid
// data set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/base/random.h"
#include "millrace/tools/data/checks.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Returns one line per kind of finding: "error box-outside 2: the first example".
std::vector<std::string> lines(const Findings& findings) {
  const char* kSeverities[] = {"error", "warning", "note"};
  std::vector<std::string> result;
  for (const auto& one : findings.sorted())
    result.push_back(std::string(kSeverities[static_cast<int>(one.kind.severity)]) + " " +
                     std::string(one.kind.name) + " " + std::to_string(one.count) +
                     (one.examples.empty() ? "" : ": " + one.examples[0].text()));
  return result;
}

/// Two images of 100 x 80 pixels with two valid objects each.
class AnnotationChecks : public ::testing::Test {
 protected:
  AnnotationChecks() {
    json_["images"] = Json::array();
    json_["annotations"] = Json::array();
    json_["categories"] = {{{"id", 1}, {"name", "cat"}}, {{"id", 2}, {"name", "dog"}}};
    for (int image = 1; image <= 2; ++image) {
      const auto name = std::to_string(image) + ".jpg";
      json_["images"].push_back(
          {{"id", image}, {"file_name", name}, {"width", 100}, {"height", 80}});
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

  void remove_shapes() {
    for (auto& one : json_["annotations"]) one.erase("segmentation");
  }

  /// A field of the first object, its new value as JSON, and the findings expected from this
  /// change: the beginning of each finding, and a part of the last one.
  struct Case {
    std::string field, value;
    std::vector<std::string> found;
    std::string part = {};
  };
  void expect_found(const std::vector<Case>& cases) {
    const auto sound = json_;
    for (const auto& [field, value, found, part] : cases) {
      object(0)[field] = Json::parse(value);
      const auto told = check();
      ASSERT_EQ(told.size(), found.size()) << field << ": " << value;
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_THAT(told[i], StartsWith(found[i])) << field << ": " << value;
      if (!part.empty()) {
        EXPECT_THAT(told.back(), HasSubstr(part)) << field << ": " << value;
      }
      json_ = sound;
    }
  }

  void write(const std::string& text) { std::ofstream(file_, std::ios::binary) << text; }

  /// Returns all findings of the file in its current state.
  std::vector<std::string> check_file() {
    Findings findings(3);
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

TEST_F(AnnotationChecks, ReportsNothingForValidData) {
  EXPECT_THAT(check(), IsEmpty());
  EXPECT_EQ(usable_, 2U);
  EXPECT_EQ(objects_, 4U);
}

TEST_F(AnnotationChecks, ReportsUnreadableFile) {
  const auto whole = json_.dump();
  json_.erase("categories");
  const auto expect_told = [&](const std::string& why) {
    EXPECT_THAT(check_file(),
                ElementsAre(AllOf(StartsWith("error file-unreadable 1: "), HasSubstr(why))));
  };
  expect_told("open");
  write("hello");
  expect_told("byte 0");
  write(whole.substr(0, 300));
  expect_told("byte 300");
  write(json_.dump());
  expect_told("'categories'");
}

TEST_F(AnnotationChecks, ContinuesAfterInvalidRecords) {
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
                              HasSubstr("-3 x 4")));
  EXPECT_THAT(found[1],
              AllOf(StartsWith("error mask-unreadable 1: annotation 20"), HasSubstr("80 x 100")));
  EXPECT_THAT(found[2], AllOf(StartsWith("error record-unreadable 3: image 7: images[2], byte "),
                              HasSubstr("'width'")));
  EXPECT_THAT(found[3],
              AllOf(StartsWith("error shape-unreadable 1: annotation 11"), HasSubstr("polygon 1")));
  EXPECT_EQ(found[4], "note image-empty 1: image 2 (2.jpg)");
  EXPECT_EQ(objects_, 1U) << "the valid one, with its own shape";
}

TEST_F(AnnotationChecks, RejectsNonFiniteNumbers) {
  const auto whole = json_.dump();
  for (const std::string number : {"NaN", "1e999"}) {
    write(std::string(whole).replace(whole.find("[10,20,30,40]"), 13, "[10," + number + ",30,40]"));
    EXPECT_THAT(check_file(), ElementsAre(AllOf(StartsWith("error box-unreadable 1: annotation 10"),
                                                HasSubstr("finite"))));
  }
}

TEST_F(AnnotationChecks, KeepsValidRecords) {
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

TEST_F(AnnotationChecks, AgreesWithReaderAboutErrors) {
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
    const bool is_refused = !testing::message_of([&] { read_dataset(file_); }).empty();
    Findings findings(1);
    check_records(file_, findings);
    ASSERT_EQ(!lines(findings).empty(), is_refused) << text;
    refused += is_refused;
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 950);
}

TEST_F(AnnotationChecks, ReportsDuplicateIds) {
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

TEST_F(AnnotationChecks, ReportsUnknownImageOrCategory) {
  object(0)["image_id"] = 99;
  object(1)["category_id"] = 77;
  EXPECT_THAT(
      check(),
      ElementsAre(
          AllOf(StartsWith("error category-unknown 1: annotation 11, image 1: "), HasSubstr("77")),
          AllOf(StartsWith("error image-unknown 1: annotation 10, image 99: "), HasSubstr("id 99")),
          "note image-empty 1: image 1 (1.jpg)"));
}

TEST_F(AnnotationChecks, ReportsMaskSizeMismatch) {
  expect_found({{"segmentation",
                 R"({"size": [100, 80], "counts": [10, 100, 7890]})",
                 {"error mask-size 1: annotation 10, image 1: "},
                 "100 x 80"}});
}

TEST_F(AnnotationChecks, ReportsIdZero) {
  expect_found({{"id", "0", {"warning annotation-id-zero 1: annotation 0, image 1 (1.jpg)"}}});
}

TEST_F(AnnotationChecks, ReportsBoxFaults) {
  const auto box = [](const std::string& finding, const std::string& shown) {
    return std::vector{finding + " 1: annotation 10, image 1 (1.jpg): box [" + shown +
                       "] in 100 x 80"};
  };
  const auto outside = [&](const std::string& shown, const std::string& distance) {
    return std::vector{box("warning box-outside", shown)[0] + ": " + distance + " pixels "};
  };
  remove_shapes();
  expect_found({
      {"bbox", "[10, 20, 0, 40]", box("error box-unusable", "10, 20, 0, 40")},
      {"bbox", "[10, 20, 30, 0]", box("error box-unusable", "10, 20, 30, 0")},
      {"bbox", "[100, 20, 30, 40]", box("error box-unusable", "100, 20, 30, 40")},
      {"bbox", "[-40, 20, 30, 40]", box("error box-unusable", "-40, 20, 30, 40")},
      {"bbox", "[10, 20, 1e-9, 40]", box("error box-unusable", "10, 20, 1e-09, 40")},
      {"bbox", "[90, 20, 15, 40]", outside("90, 20, 15, 40", "5"), "right"},
      {"bbox", "[-3, 20, 15, 40]", outside("-3, 20, 15, 40", "3"), "left"},
      {"bbox", "[10, -2.5, 15, 40]", outside("10, -2.5, 15, 40", "2.5"), "top"},
      {"bbox", "[10, 20, 15, 62]", outside("10, 20, 15, 62", "2"), "bottom"},
      {"bbox", "[-0.5, 20, 15, 60.9]", {}},  // within rounding
      {"bbox", "[10, 20, 0.5, 2]", box("warning box-thin", "10, 20, 0.5, 2")},
      {"bbox", "[99.5, 20, 1.3, 30]", box("warning box-thin", "99.5, 20, 1.3, 30")},
      {"bbox", "[10.3, 20.7, 1, 1]", {}},  // a whole pixel at any position
      {"bbox", "[10, 20, 2, 30]", box("note box-elongated", "10, 20, 2, 30")},
  });
}

TEST_F(AnnotationChecks, ReportsImageWithoutUsableObject) {
  remove_shapes();
  object(0)["bbox"] = object(1)["bbox"] = {10, 20, 0, 40};
  EXPECT_THAT(check(), ElementsAre(StartsWith("error box-unusable 2"),
                                   "note image-empty 1: image 1 (1.jpg)"));
  EXPECT_EQ(usable_, 1U);
}

TEST_F(AnnotationChecks, ReportsIgnoredObjects) {
  object(0)["ignore"] = 1;
  object(1)["ignore"] = true;
  object(2)["ignore"] = 0;
  object(3)["ignore"] = nullptr;
  EXPECT_THAT(check(), ElementsAre("note image-empty 1: image 1 (1.jpg)",
                                   "note object-ignored 2: annotation 10, image 1 (1.jpg)"));
  EXPECT_EQ(usable_, 1U);
}

TEST_F(AnnotationChecks, ReportsShapeFaults) {
  const std::string one = " 1: annotation 10, image 1 (1.jpg)";
  expect_found({
      {"segmentation", "[[10, 20, 40, 60, 10, 20]]", {"error shape-empty" + one}},
      {"segmentation",
       R"({"size": [80, 100], "counts": [8000]})",
       {"error shape-empty" + one, "note mask-not-crowd" + one}},
      {"segmentation",
       "[[210, 20, 240, 20, 240, 60]]",
       {"error shape-empty" + one, "warning shape-outside" + one + ": 140 pixels "},
       "right"},
      {"segmentation",
       "[[10, 20.1, 40, 20.1, 40, 20.2, 10, 20.2]]",
       {"warning shape-without-pixels" + one}},
      {"bbox", "[10, 20, 34, 40]", {"warning box-off-shape" + one + ": 4 pixels "}, "IoU 0.88"},
      {"bbox",
       "[50, 20, 30, 40]",
       {"error box-apart-from-shape" + one + ": 40 pixels "},
       "IoU 0.00"},
      {"bbox", "[12, 22, 28, 39]", {}},  // within the tolerance of annotators
      {"area", "900", {"warning area-off-shape" + one + ": area 900, "}, "1200"},
      {"area",
       "-1",
       {"warning area-not-positive" + one + ": area -1, box [10, 20, 30, 40] in 100 x 80"}},
      {"iscrowd", "1", {"note crowd-polygon" + one}},
  });
  object(0).erase("area");
  EXPECT_THAT(check(), IsEmpty()) << "the reader computes the area from the shape";
}

TEST_F(AnnotationChecks, ReportsMissingShapeIfOthersHaveOne) {
  object(0).erase("segmentation");
  EXPECT_THAT(check(), ElementsAre("warning shape-missing 1: annotation 10, image 1 (1.jpg)"));
  remove_shapes();
  EXPECT_THAT(check(), IsEmpty());
}

TEST_F(AnnotationChecks, ExcludesCrowdsFromUsableObjects) {
  object(0)["iscrowd"] = object(1)["iscrowd"] = 1;
  EXPECT_THAT(check(), ElementsAre(StartsWith("note crowd-polygon 2"),
                                   "note image-empty 1: image 1 (1.jpg)"));
  EXPECT_EQ(usable_, 1U);
}

TEST_F(AnnotationChecks, AcceptsCrowdShapesUnlessEmpty) {
  object(0)["iscrowd"] = 1;
  object(0)["area"] = 7;
  object(0)["segmentation"] = {{"size", {80, 100}}, {"counts", {0, 400, 7600}}};
  EXPECT_THAT(check(), IsEmpty());
  object(0)["segmentation"] = {{"size", {80, 100}}, {"counts", {8000}}};
  EXPECT_THAT(check(), ElementsAre("warning crowd-empty 1: annotation 10, image 1 (1.jpg)"));
}

TEST_F(AnnotationChecks, IgnoresUnusedShapesAndCategories) {
  object(0)["segmentation"] = {{10, 20, 40, 60, 10, 20}};
  object(1)["bbox"] = {10, 20, 0, 0};
  write(json_.dump());
  Findings findings(3);
  const auto data = check_records(file_, findings);
  EXPECT_EQ(check_objects(*data, std::vector<std::int64_t>{1}, /*with_shapes=*/false, findings),
            2U);
  EXPECT_THAT(lines(findings), IsEmpty());
}

TEST_F(AnnotationChecks, ReportsDuplicateObject) {
  auto again = object(0);
  again["id"] = 30;
  json_["annotations"].push_back(again);
  EXPECT_THAT(check(),
              ElementsAre(AllOf(StartsWith("warning object-twice 1: annotation 30, image 1 "),
                                HasSubstr("annotation 10"))));
  json_["annotations"][4]["category_id"] = 2;
  EXPECT_THAT(check(), IsEmpty()) << "different categories may share a box";
}

TEST_F(AnnotationChecks, LimitsExamplesButCountsAll) {
  for (int i = 0; i < 500; ++i)
    json_["images"].push_back(
        {{"id", 1000 + i}, {"file_name", std::to_string(i)}, {"width", 9}, {"height", 9}});
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

TEST(CheckObjects, ReportsNoErrorInRealAnnotations) {
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
