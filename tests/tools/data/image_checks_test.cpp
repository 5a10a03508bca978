// Faults in image files, classes and sources, each tested alone in an otherwise valid data set.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <fstream>

#include "millrace/base/files.h"
#include "millrace/coco/data/records.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/store/pack_records.h"
#include "millrace/dataflow/store/record_header.h"
#include "millrace/dataflow/store/record_store.h"
#include "millrace/tools/data/checks.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/data.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::TinyCoco;

/// Returns one line per kind of finding, errors first: "name count: the first example".
std::vector<std::string> lines(const coco::Findings& findings) {
  std::vector<std::string> result;
  for (const auto& one : findings.sorted())
    result.push_back(std::string(one.kind.name) + " " + std::to_string(one.count) +
                     (one.examples.empty() ? "" : ": " + one.examples[0].text()));
  return result;
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

class ImageChecks : public ::testing::Test {
 protected:
  std::vector<std::string> check(ImageCheck how) {
    coco::Findings findings(3);
    check_images(split_, how, findings, [] {});
    check_file_names(split_, findings);
    return lines(findings);
  }
  /// Returns the findings; expects them to be the same if images are decoded and if only their
  /// headers are read.
  std::vector<std::string> check() {
    const auto found = check(ImageCheck::decode);
    EXPECT_EQ(check(ImageCheck::heads), found);
    return found;
  }

  TinyCoco files_{5};
  DataSplit split_ = open_split(files_.options(), "train2017");
};

TEST_F(ImageChecks, ReportsNothingForValidFiles) { EXPECT_THAT(check(), IsEmpty()); }

TEST_F(ImageChecks, ReportsMissingFile) {
  fs::remove(files_.image(2));
  EXPECT_THAT(check(), ElementsAre("image-missing 1: image 102 (picture2.jpg)"));
}

TEST_F(ImageChecks, ReportsImageSizeMismatch) {
  fs::copy_file(files_.image(0), files_.image(1), fs::copy_options::overwrite_existing);
  EXPECT_THAT(check(), ElementsAre(StartsWith("image-size 1: image 101 (picture1.jpg): ")));
}

TEST_F(ImageChecks, ReportsFilesThatAreNotImages) {
  write(files_.image(1), "<html>not found</html>");
  write(files_.image(3), "");
  EXPECT_THAT(check(), ElementsAre(StartsWith("image-unreadable 2: image 101 (picture1.jpg): ")));
}

TEST_F(ImageChecks, ReportsTruncatedImageOnlyIfDecoded) {
  fs::resize_file(files_.image(1), fs::file_size(files_.image(1)) - 60);
  EXPECT_THAT(check(ImageCheck::decode),
              ElementsAre(AllOf(StartsWith("image-unreadable 1: image 101 (picture1.jpg): "),
                                HasSubstr("JPEG"))));
  EXPECT_THAT(check(ImageCheck::heads), IsEmpty());
}

TEST_F(ImageChecks, ReportsFormatMismatch) {
  write(files_.image(1), testing::encoded(".png", testing::picture_in(files_.image(1))));
  EXPECT_THAT(check(), ElementsAre(AllOf(StartsWith("image-misnamed 1: image 101 (picture1.jpg): "),
                                         HasSubstr("PNG"))));
}

TEST_F(ImageChecks, ReportsUnusedImageFile) {
  fs::copy_file(files_.image(0), files_.image(0).parent_path() / "more.jpg");
  write(files_.image(0).parent_path() / "notes.txt", "no image");
  EXPECT_THAT(check(), ElementsAre("file-orphan 1: more.jpg"));
}

TEST_F(ImageChecks, ReportsSharedFile) {
  auto json = nlohmann::json::parse(
      read_file(fs::path(files_.options().root) / "annotations/instances_train2017.json"));
  auto again = json["images"][1];
  again["id"] = 500;
  json["images"].push_back(again);
  split_.annotations = coco::parse_dataset(json.dump(), "x.json");
  EXPECT_THAT(check(),
              ElementsAre(AllOf(StartsWith("file-name-twice 1: image 500 (picture1.jpg): "),
                                HasSubstr("image 101"))));
}

TEST_F(ImageChecks, ReportsSameForAnyThreadCount) {
  for (int i = 0; i < 5; i += 2) fs::remove(files_.image(i));
  const tbb::global_control workers(tbb::global_control::max_allowed_parallelism, 8);
  for (const int threads : {1, 2, 3, 8}) {
    std::atomic<int> looked_at = 0;
    coco::Findings findings(2);
    tbb::task_arena(threads).execute(
        [&] { check_images(split_, ImageCheck::decode, findings, [&] { ++looked_at; }); });
    EXPECT_EQ(looked_at, 5);
    EXPECT_THAT(lines(findings), ElementsAre("image-missing 3: image 100 (picture0.jpg)"));
    EXPECT_EQ(findings.sorted()[0].examples[1].image, 102);
  }
}

/// Returns the findings for one file that is annotated with this size.
std::vector<coco::Finding> check_file(const fs::path& file, cv::Size annotated) {
  coco::Records records;
  records.add_image(1, file.filename().string(), annotated.width, annotated.height);
  coco::Findings findings(1);
  check_images({assemble(std::move(records), "x"), file.parent_path(), {}, {}}, ImageCheck::decode,
               findings, [] {});
  return findings.sorted();
}

TEST(CheckImages, MatchesDecoderForUnusualJpegs) {
  MILLRACE_NEEDS_DATA("jpeg");
  int sound = 0, broken = 0;
  for (const auto& entry : fs::directory_iterator(testing::data_folder() / "jpeg")) {
    const auto& file = entry.path();
    if (file.extension() != ".jpg") continue;
    try {
      const auto size = decode_rgb(read_file(file), file.string()).size();
      for (const auto& one : check_file(file, size))
        EXPECT_THAT(one.kind.name, ::testing::AnyOf("image-misnamed", "image-unturned")) << file;
      ++sound;
    } catch (const DataError& problem) {
      const auto found = check_file(file, {64, 48});
      ASSERT_FALSE(found.empty()) << problem.what();
      EXPECT_EQ(found[0].kind.severity, coco::Severity::error) << file;
      EXPECT_THAT(found[0].kind.name, ::testing::AnyOf("image-unreadable", "image-size")) << file;
      ++broken;
    }
  }
  EXPECT_GT(sound, 20);
  EXPECT_GT(broken, 10);
}

TEST(CheckImages, ReportsIgnoredExifOrientation) {
  MILLRACE_NEEDS_DATA("jpeg");
  const auto folder = testing::data_folder() / "jpeg";
  const auto found = [&](const char* name, bool swapped) {
    const auto upright = decode_rgb(read_file(folder / name), name).size();
    const auto all =
        check_file(folder / name, swapped ? cv::Size(upright.height, upright.width) : upright);
    return all.empty() ? "" : std::string(all[0].kind.name) + ": " + all[0].examples[0].what;
  };
  EXPECT_EQ(found("Pillow__hopper_orientation_3.jpg", false), "image-unturned: EXIF orientation 3");
  EXPECT_EQ(found("coco3_exif6.jpg", false), "") << "annotated and rotated upright";
  EXPECT_EQ(found("coco3_exif6.jpg", true), "image-unturned: EXIF orientation 6");
}

/// Two splits of one data set.
struct TwoSplits {
  TinyCoco files{5};
  DataSplit train = open_split(files.options(), "train2017"), val = train;
  TwoSplits() {
    val.images = train.images.parent_path() / "val2017";
    fs::create_directory(val.images);
    for (int i = 0; i < 5; ++i) {  // different photos of the same sizes
      testing::save_picture(val.images / files.image(i).filename(),
                            255 - testing::picture_in(files.image(i)));
    }
  }

  std::vector<std::string> check(ImageCheck how = ImageCheck::decode) const {
    coco::Findings findings(3);
    const NamedSplit marked[] = {{"train", train, check_images(train, how, findings, [] {})},
                                 {"val", val, check_images(val, how, findings, [] {})}};
    check_copies(marked, findings);
    return lines(findings);
  }
};

TEST(CheckCopies, ReportsImageInBothSplits) {
  const TwoSplits splits;
  EXPECT_THAT(splits.check(), IsEmpty()) << "other images with the same names are not copies";
  fs::copy_file(splits.files.image(3), splits.val.images / "picture3.jpg",
                fs::copy_options::overwrite_existing);
  for (const auto how : {ImageCheck::decode, ImageCheck::heads})
    EXPECT_THAT(
        splits.check(how),
        ElementsAre(AllOf(StartsWith("photo-in-both-splits 1: image 103 (picture3.jpg): "),
                          HasSubstr("in val"), HasSubstr("image 103 (picture3.jpg) in train"))));
}

TEST(CheckCopies, DistinguishesFilesThatBeginAlike) {
  const TwoSplits splits;
  const auto bytes = read_file(splits.files.image(3));
  const std::string padding(200 << 10, '\0');  // after the end of the image
  write(splits.files.image(3), bytes + padding + "a");
  write(splits.val.images / "picture3.jpg", bytes + padding + "b");
  EXPECT_THAT(splits.check(ImageCheck::heads), IsEmpty());
  write(splits.val.images / "picture3.jpg", bytes + padding + "a");
  EXPECT_THAT(splits.check(ImageCheck::heads), ElementsAre(StartsWith("photo-in-both-splits 1")));
}

TEST(CheckCopies, ReportsDuplicateImageInSplit) {
  const TwoSplits splits;
  fs::copy_file(splits.files.image(0), splits.files.image(4), fs::copy_options::overwrite_existing);
  EXPECT_THAT(splits.check(),
              ::testing::Contains(AllOf(StartsWith("photo-twice 1: image 104 (picture4.jpg): "),
                                        HasSubstr("image 100 (picture0.jpg) in train"))));
}

/// Returns a split without files, whose categories are given as id, name and number of objects.
NamedSplit split_of(const std::string& name,
                    const std::vector<std::tuple<int, std::string, int>>& categories,
                    const std::vector<std::string>& classes) {
  coco::Records records;
  records.add_image(1, "a.jpg", 100, 100);
  int id = 0;
  for (const auto& [category, of, objects] : categories) {
    records.add_category(category, of);
    for (int i = 0; i < objects; ++i)
      records.add({.id = ++id, .image_id = 1, .category_id = category, .bbox = {0, 0, 9, 9}});
  }
  const auto data = assemble(std::move(records), name);
  return {name, {data, {}, classes, find_categories(*data, classes)}};
}

std::vector<std::string> check(const std::vector<NamedSplit>& splits) {
  coco::Findings findings(3);
  for (const auto& split : splits) check_categories(split, findings);
  check_classes(splits, count_classes(splits), findings);
  return lines(findings);
}

TEST(CheckClasses, ReportsUnknownClass) {
  EXPECT_THAT(check({split_of("train", {{1, "cat", 3}, {2, "dog", 4}}, {"cat", "dgo"})}),
              ElementsAre(AllOf(StartsWith("class-unknown 1: 'dgo'"), HasSubstr("'dog'")),
                          StartsWith("class-unlearned 1: 'dgo'")));
}

TEST(CheckClasses, ReportsCategoryDifferences) {
  const std::vector<std::string> classes = {"cat", "dog"};
  EXPECT_THAT(check({split_of("train", {{1, "cat", 3}, {2, "dog", 4}}, classes),
                     split_of("val", {{1, "cat", 1}, {2, "dog", 1}}, classes)}),
              IsEmpty());
  EXPECT_THAT(check({split_of("train", {{1, "cat", 3}, {2, "dog", 4}}, classes),
                     split_of("val", {{1, "dog", 1}, {2, "cat", 1}, {3, "fox", 1}}, classes)}),
              ElementsAre("category-only-in-evaluation 1: category 3: 'fox' of val",
                          AllOf(StartsWith("category-id-differs 2: category 1: 'dog' of val"),
                                HasSubstr("category 2 in train"))));
}

TEST(CheckClasses, ReportsDuplicateCategoryName) {
  EXPECT_THAT(check({split_of("train", {{1, "cat", 3}, {2, "cat", 4}}, {"cat"})}),
              ElementsAre(AllOf(StartsWith("category-name-twice 1: category 2: 'cat'"),
                                HasSubstr("category 1"))));
}

TEST(CheckClasses, ReportsCategoryIdGaps) {
  for (const auto& [cat, dog] : {std::pair(1, 7), {0, 1}})
    EXPECT_THAT(
        check({split_of("train", {{cat, "cat", 3}, {dog, "dog", 4}}, {"cat", "dog"})}),
        ElementsAre(fmt::format("category-id-gaps 1: 2 categories, ids from {} to {}", cat, dog)));
}

TEST(CheckClasses, ReportsClassesWithoutObjects) {
  const std::vector<std::string> classes = {"cat", "dog", "fox"};
  EXPECT_THAT(check({split_of("train", {{1, "cat", 0}, {2, "dog", 0}, {3, "fox", 1}}, classes),
                     split_of("val", {{1, "cat", 0}, {2, "dog", 5}, {3, "fox", 1}}, classes)}),
              ElementsAre(AllOf(StartsWith("class-unlearned 2: 'dog'"), HasSubstr("5")),
                          "class-unscored 1: cat"));
}

TEST(CheckClasses, ReportsClassImbalance) {
  const auto found = [](int most) {
    return check(
        {split_of("train", {{1, "cat", most}, {2, "dog", 2}, {3, "fox", 0}}, {"cat", "dog"})});
  };
  EXPECT_THAT(found(200), IsEmpty());
  EXPECT_THAT(found(201),
              ElementsAre(AllOf(StartsWith("class-imbalance 1: train: 201 objects of 'cat'"),
                                HasSubstr("2 of 'dog'"))));
}

TEST(CountClasses, CountsObjectsAndTheirImages) {
  const TinyCoco files(7);  // the first six images have objects
  const auto split = open_split(files.options(), "train2017");
  const auto table = count_classes(std::vector<NamedSplit>{{"train", split}});
  ASSERT_EQ(table.size(), 2U);
  for (const auto& row : table) {
    EXPECT_EQ(row[0].objects, 3U) << "without crowds";
    EXPECT_EQ(row[0].images, 3U);
  }
}

TEST(CheckSizes, CountsTinyObjectsAfterResize) {
  auto split = split_of("train", {{1, "cat", 2}}, {"cat"}).data;  // boxes of 9 x 9 in 100 x 100
  const auto sizes = [&](std::int64_t side) {
    coco::Findings findings(1);
    const auto counts = check_sizes(split, side, /*max_side=*/10000, findings);
    EXPECT_EQ(lines(findings).empty(), counts[0] == 0);
    return counts;
  };
  for (const int tiny : {100, 177}) EXPECT_THAT(sizes(tiny), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(sizes(178), ElementsAre(0, 2, 0, 0));
  EXPECT_THAT(sizes(800), ElementsAre(0, 0, 2, 0));
  EXPECT_THAT(sizes(2000), ElementsAre(0, 0, 0, 2));
}

TEST(CheckSamples, ReportsUnusableSamples) {
  const TinyCoco files(5);
  const auto source = open_source(open_split(files.options(), "train2017"), false);
  const auto check = [&](bool decode) {
    coco::Findings findings(3);
    check_samples(*source, decode, findings, [] {});
    return lines(findings);
  };
  EXPECT_THAT(check(true), IsEmpty());
  fs::resize_file(files.image(1), 100);
  EXPECT_THAT(check(true),
              ElementsAre(AllOf(StartsWith("sample-unusable 1: "), HasSubstr("picture1.jpg"))));
  EXPECT_THAT(check(false), IsEmpty());
}

TEST(CheckSamples, ReportsDamagedRecords) {
  const TinyCoco files(5);
  const auto split = open_split(files.options(), "train2017");
  const auto folder = fs::path(files.options().root) / "packed";
  const auto jpeg = read_file(files.image(2));
  pack_records(DetectionSource(split, false), split.classes, folder);
  auto bytes = read_file(records_file(folder));
  const auto at = bytes.find(jpeg.substr(0, 400));
  ASSERT_NE(at, bytes.npos);
  bytes[at + 300] = static_cast<char>(bytes[at + 300] ^ 1);
  write(records_file(folder), bytes);
  coco::Findings findings(3);
  check_samples(RecordStore(folder), true, findings, [] {});
  EXPECT_THAT(lines(findings),
              ElementsAre(AllOf(StartsWith("sample-unusable 1: "), HasSubstr("record 2"))));
}

}  // namespace
}  // namespace millrace
