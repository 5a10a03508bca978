// YOLO folders in the layouts of ultralytics, Roboflow, CVAT and LabelImg.
#include "tests/support/thrown.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Yolo, ReadsRelativeCoordinates) {
  Folder folder;
  folder.image("a.jpg", 200, 100)
      .file("a.txt", "1 0.5 0.5 0.2 0.4\n0 0.1 0.1 0.9 0.1 0.9 0.5\n")
      .file("classes.txt", "dog\ncat\n");
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].name, kWhole);
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("cat 80 30 40 40", "dog 20 10 160 40"));
  const auto& data = *splits[0].data;
  EXPECT_EQ(data.annotations[0].shape.kind, coco::ShapeKind::none);
  EXPECT_EQ(data.annotations[1].shape.kind, coco::ShapeKind::polygons);
  EXPECT_DOUBLE_EQ(data.annotations[1].area, 160 * 40 / 2.);
  EXPECT_THAT(names_of_classes(splits[0]), ElementsAre("dog", "cat"));
  EXPECT_THAT(folder.found(), IsEmpty());
}

/// Reads two images, train/a and val/b; {} in a layout stands for the split.
std::vector<Split> read_layout(Folder& folder, const std::string& images, const std::string& labels,
                               const std::string& train, const std::string& val) {
  const auto place = [](const std::string& layout, const std::string& split) {
    return fmt::format(fmt::runtime(layout), split);
  };
  folder.image(place(images, train) + "/a.jpg", 10, 10)
      .file(place(labels, train) + "/a.txt", "0 .5 .5 1 1\n")
      .image(place(images, val) + "/b.jpg", 10, 10)
      .file(place(labels, val) + "/b.txt", "1 .5 .5 .2 .2\n");
  return folder.read();
}

TEST(Yolo, ReadsSameSplitsFromEachLayout) {
  const struct {
    const char *images, *labels, *train, *val, *yaml;
  } layouts[] = {
      {"images/{}", "labels/{}", "train", "val",
       "path: ../datasets/x\ntrain: images/train\nval: images/val\nnames:\n  0: dog\n  1: cat\n"},
      {"images/{}", "labels/{}", "train", "val", "names: ['dog', 'cat']\nnc: 2\n"},
      {"{}/images", "{}/labels", "train", "valid",
       "train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnc: 2\nnames: ['dog', "
       "'cat']\n"},
      {"{}", "{}", "train", "valid", "names: [dog, cat]\n"},
      {"images/{}", "labels/{}", "train2017", "val2017",
       "path: .\ntrain:\n  - images/train2017\nval: images/val2017\nnames: {0: dog, 1: cat}\n"}};
  for (const auto& one : layouts) {
    Folder folder;
    folder.file("data.yaml", one.yaml);
    const auto splits = read_layout(folder, one.images, one.labels, one.train, one.val);
    ASSERT_EQ(splits.size(), 2u) << one.images << one.yaml;
    EXPECT_EQ(splits[0].name, "train");
    EXPECT_EQ(splits[1].name, "val");
    EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 0 0 10 10"));
    EXPECT_THAT(boxes_of(splits[1]), ElementsAre("cat 4 4 2 2"));
    EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg"));
    EXPECT_THAT(folder.found(), IsEmpty());
  }
}

TEST(Yolo, ReadsCvatFoldersAndLists) {
  Folder folder;
  folder.image("obj_train_data/a.jpg", 10, 10)
      .file("obj_train_data/a.txt", "0 .5 .5 1 1\n")
      .file("obj.names", "dog\n")
      .file("obj.data", "classes = 1\n")
      .file("train.txt", "data/obj_train_data/a.jpg\n");
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 0 0 10 10"));

  Folder listed;
  listed.image("images/a.jpg", 10, 10)
      .image("images/b.jpg", 10, 10)
      .file("labels/a.txt", "0 .5 .5 1 1\n")
      .file("labels/b.txt", "0 .5 .5 1 1\n")
      .file("train.txt", "./images/a.jpg\n./images/nowhere.jpg\n")
      .file("val.txt", "./images/b.jpg\n")
      .file("data.yaml", "train: train.txt\nval: val.txt\nnames: [dog]\n");
  const auto two = listed.read();
  ASSERT_EQ(two.size(), 2u);
  EXPECT_THAT(names_of_images(two[1]), ElementsAre("b.jpg"));
  EXPECT_THAT(listed.examples("label-without-image"), HasSubstr("train.txt:2"));
}

TEST(Yolo, ReportsFaultsWithFileAndLine) {
  Folder folder;
  for (const auto* name : {"images/a.jpg", "images/b.jpg", "images/c.jpg"})
    folder.image(name, 100, 100);
  folder.file("images/d.jpg", "no image")
      .file("labels/a.txt",
            "0 .5 .5 .1 .1\n7 .5 .5 .1 .1\n-1 .5 .5 .1 .1\n0 .5 .5 0 .1\n"
            "0 .9 .9 .4 .1\n0 300 .5 .1 .1\n")
      .file("labels/b.txt", "")
      .file("labels/d.txt", "0 .5 .5 .1 .1\n")
      .file("labels/e.txt", "0 .5 .5 .1 .1\n")
      .file("classes.txt", "dog\n");
  const auto splits = folder.read();
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg", "b.jpg", "c.jpg"));
  EXPECT_THAT(boxes_of(splits[0]),
              ElementsAre("dog 45 45 10 10", "dog 50 45 0 10", "dog 70 85 40 10"));
  EXPECT_THAT(folder.found(), ElementsAre("image-unlabelled 1", "image-unreadable 1",
                                          "label-class 2", "label-empty 1", "label-outside 1",
                                          "label-unreadable 1", "label-without-image 1"));
  EXPECT_THAT(folder.examples("label-class"), HasSubstr("labels/a.txt:2: class 7"));
  EXPECT_THAT(folder.examples("label-unreadable"), HasSubstr("labels/a.txt:6: 300"));
  EXPECT_THAT(folder.examples("image-unlabelled"), HasSubstr("images/c.jpg"));
  EXPECT_THAT(folder.examples("label-without-image"), HasSubstr("labels/e.txt"));
}

TEST(Yolo, SkipsSplitWithoutLabels) {
  Folder folder;
  folder.image("images/train/a.jpg", 10, 10)
      .file("labels/train/a.txt", "0 .5 .5 1 1\n")
      .image("images/test/b.jpg", 10, 10)
      .file("data.yaml", "train: images/train\ntest: images/test\nnames: [dog]\n");
  EXPECT_EQ(folder.read().size(), 1u);
  EXPECT_THAT(folder.examples("image-unannotated"), HasSubstr("split 'test'"));
}

TEST(Yolo, NumbersUnnamedClasses) {
  Folder folder;
  folder.image("a.jpg", 10, 10).file("a.txt", "2 .5 .5 1 1\n");
  const auto splits = folder.read();
  EXPECT_THAT(names_of_classes(splits[0]), ElementsAre("class 0", "class 1", "class 2"));
  EXPECT_THAT(folder.found(), ElementsAre("class-names-missing 1"));
}

TEST(Yolo, ReportsLineInInvalidDataFile) {
  const struct {
    const char *yaml, *says;
  } wrong[] = {{"names: [a]\ntrain: nowhere\n", "data.yaml:2: 'train'"},
               {"nc: 3\nnames: [a]\n", "data.yaml:1: 'nc'"},
               {"names:\n  x: a\n", "data.yaml:2: 'names'"},
               {"names: [a\ntrain: b\n", "data.yaml:"},
               {"names: [a, a]\n", "data.yaml: two classes"},
               {"names: 3\n", "data.yaml:1: 'names'"}};
  for (const auto& [yaml, says] : wrong) {
    Folder folder;
    folder.image("a.jpg", 10, 10).file("a.txt", "0 .5 .5 1 1\n").file("data.yaml", yaml);
    EXPECT_THAT(testing::message_of([&] { folder.read(); }), HasSubstr(says));
  }
}

TEST(Yolo, ReportsSkippedKeypoints) {
  Folder folder;
  folder.image("a.jpg", 10, 10)
      .file("a.txt", "0 .5 .5 1 1 .1 .1 2 .2 .2 2\n")
      .file("data.yaml", "names: [person]\nkpt_shape: [2, 3]\n");
  EXPECT_THAT(boxes_of(folder.read()[0]), ElementsAre("person 0 0 10 10"));
  EXPECT_THAT(folder.found(), ElementsAre("label-keypoints 1"));
}

}  // namespace
}  // namespace millrace::formats
