// Imports a folder of labels into a new folder in COCO's layout, and reads the supported COCO
// layouts.
#include "millrace/tools/formats/import_folder.h"

#include "millrace/base/files.h"
#include "tests/support/thrown.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Writes a COCO data set with every kind of object.
fs::path write_kinds(const testing::Scratch& scratch) {
  const auto folder = scratch / "kinds";
  fs::create_directories(folder / "train2017/sub");
  fs::create_directories(folder / "annotations");
  const cv::Mat pixels(30, 50, CV_8UC3, cv::Scalar(9, 99, 40));
  for (const auto* name : {"a.jpg", "sub/b.jpg", "c.png"})
    std::ofstream(folder / "train2017" / name, std::ios::binary)
        << (std::string_view(name).ends_with("png") ? coco::encode_png(pixels)
                                                    : coco::encode_jpeg(pixels, 80));
  std::ofstream(folder / "annotations/instances_train2017.json") << R"({
    "images": [{"id": 7, "file_name": "a.jpg", "width": 50, "height": 30},
               {"id": 3, "file_name": "sub/b.jpg", "width": 50, "height": 30},
               {"id": 9, "file_name": "c.png", "width": 50, "height": 30}],
    "categories": [{"id": 5, "name": "teddy, bear"}, {"id": 2, "name": "naïve \"cat\""}],
    "annotations": [
      {"id": 1, "image_id": 7, "category_id": 5, "bbox": [1.25, 2.5, 10.1, 7.3], "area": 70, "iscrowd": 0},
      {"id": 2, "image_id": 7, "category_id": 2, "bbox": [20, 3, 9, 8], "area": 40, "iscrowd": 0,
       "segmentation": [[20, 3, 29, 3, 29, 11]]},
      {"id": 3, "image_id": 7, "category_id": 2, "bbox": [2, 20, 30, 6], "area": 60, "iscrowd": 0,
       "segmentation": [[2, 20, 8, 20, 8, 26, 2, 26], [22.5, 20, 32, 20.5, 31, 26]]},
      {"id": 4, "image_id": 7, "category_id": 5, "bbox": [40, 0, 4, 5], "area": 18, "iscrowd": 0,
       "segmentation": {"size": [30, 50], "counts": [1200, 5, 25, 1, 3, 1, 25, 1, 3, 1, 25, 5, 205]}},
      {"id": 5, "image_id": 7, "category_id": 5, "bbox": [10, 10, 2, 3], "area": 6, "iscrowd": 1,
       "segmentation": {"size": [30, 50], "counts": [310, 3, 27, 3, 1157]}},
      {"id": 6, "image_id": 3, "category_id": 5, "bbox": [1, 1, 2, 2], "area": 4, "iscrowd": 0, "ignore": 1,
       "segmentation": [[1, 1, 3, 1, 3, 3, 1, 3]]}]})";
  return folder;
}

void expect_same_objects(const coco::Dataset& was, const coco::Dataset& is) {
  ASSERT_EQ(was.images.size(), is.images.size());
  ASSERT_EQ(was.annotations.size(), is.annotations.size());
  for (std::size_t i = 0; i < was.annotations.size(); ++i) {
    const auto &a = was.annotations[i], &b = is.annotations[i];
    EXPECT_EQ(a.id, b.id);
    EXPECT_EQ(a.category_id, b.category_id);
    EXPECT_EQ(a.crowd, b.crowd);
    EXPECT_EQ(a.ignored, b.ignored);
    EXPECT_THAT(b.bbox, ::testing::ElementsAreArray(a.bbox));
    const auto shape = was.segmentation(a);
    if (std::holds_alternative<coco::Rle>(shape))
      EXPECT_EQ(coco::mask_of(shape, 30, 50), coco::mask_of(is.segmentation(b), 30, 50));
    else
      EXPECT_EQ(shape, is.segmentation(b));
  }
}

TEST(Import, KeepsEveryKindOfObject) {
  const testing::Scratch scratch;
  coco::Findings findings(1);
  const auto was = import_folder(write_kinds(scratch), scratch / "out", "coco", findings);
  const auto is = find_format("coco").read(Listing(scratch / "out"), findings);
  EXPECT_THAT(findings.sorted(), IsEmpty());
  ASSERT_THAT(is, SizeIs(1));
  EXPECT_EQ(is[0].name, "train2017");
  expect_same_objects(*was.splits[0].data, *is[0].data);
}

TEST(Import, KeepsUnnamedSplit) {
  const testing::Scratch scratch;
  Folder folder;
  folder.image("a.jpg", 60, 40).file("a.txt", "0 .5 .5 .2 .2\n").file("classes.txt", "dog\n");
  EXPECT_EQ(import_folder(folder.path(), scratch / "out", "", folder.findings).from.format->name,
            "yolo");
  const auto back = find_format("coco").read(Listing(scratch / "out"), folder.findings);
  ASSERT_THAT(back, SizeIs(1));
  EXPECT_EQ(back[0].name, kWhole);
  EXPECT_THAT(boxes_of(back[0]), ElementsAre("dog 24 16 12 8"));
}

TEST(Import, WritesSameBytesAgain) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  coco::Findings findings(1);
  for (const auto* out : {"one", "two"}) import_folder(source, scratch / out, "", findings);
  const auto file = "annotations/instances_train2017.json";
  EXPECT_EQ(read_file(scratch / "one" / file), read_file(scratch / "two" / file));
}

TEST(Import, LinksImagesWithoutChangingSource) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  coco::Findings findings(1);
  import_folder(source, scratch / "out", "", findings);
  EXPECT_TRUE(fs::equivalent(source / "train2017/a.jpg", scratch / "out/train2017/a.jpg"));
  fs::remove_all(scratch / "out");
  EXPECT_TRUE(fs::exists(source / "train2017/a.jpg"));
}

TEST(Import, RejectsExistingFolder) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  coco::Findings findings(1);
  import_folder(source, scratch / "out", "", findings);
  EXPECT_THAT(testing::message_of<ConfigError>(
                  [&] { import_folder(source, scratch / "out", "", findings); }),
              HasSubstr((scratch / "out").string()));
  EXPECT_THAT(testing::message_of([&] { import_folder(source, scratch / "new", "voc", findings); }),
              HasSubstr("no image"));
  EXPECT_FALSE(fs::exists(scratch / "new"));
  EXPECT_FALSE(fs::exists(scratch / "new.part"));
}

TEST(Import, SkipsMissingCocoImages) {
  Folder folder;
  folder.image("val/a.jpg", 10, 10).file("annotations/instances_val.json", R"({
    "images": [{"id": 1, "file_name": "a.jpg", "width": 10, "height": 10},
               {"id": 2, "file_name": "b.jpg", "width": 10, "height": 10}],
    "categories": [{"id": 1, "name": "x"}],
    "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [1, 1, 2, 2]},
                    {"id": 2, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]},
                    {"id": 3, "image_id": 1, "category_id": 8, "bbox": [1, 1, 2, 2]}]})");
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("x 1 1 2 2"));
  EXPECT_THAT(folder.found(), ElementsAre("category-unknown 1", "image-missing 1"));
}

TEST(Coco, FindsEachLayout) {
  const std::string json =
      R"({"images": [{"id": 1, "file_name": "a.jpg", "width": 10, "height": 10}],
    "categories": [{"id": 1, "name": "x"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}]})";
  const struct {
    const char *annotations, *image, *split;
  } layouts[] = {{"annotations/instances_train2017.json", "train2017/a.jpg", "train2017"},
                 {"annotations/instances_default.json", "images/default/a.jpg", "default"},
                 {"annotations/instances_default.json", "images/a.jpg", "default"},
                 {"train/_annotations.coco.json", "train/a.jpg", "train"},
                 {"labels.json", "a.jpg", kWhole},
                 {"labels.json", "data/a.jpg", kWhole},
                 {"annotations/valid.json", "valid/a.jpg", "val"}};
  for (const auto& [annotations, image, split] : layouts) {
    Folder folder;
    folder.file(annotations, json).image(image, 10, 10);
    const auto splits = folder.read();
    ASSERT_THAT(splits, SizeIs(1)) << annotations;
    EXPECT_EQ(splits[0].name, split);
    EXPECT_EQ(splits[0].images / "a.jpg", folder.path() / image);
  }
}

}  // namespace
}  // namespace millrace::formats
