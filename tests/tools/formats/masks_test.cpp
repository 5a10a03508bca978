// PNG masks in the layouts of common data sets.
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Masks, ReadsEachValueAsObject) {
  Folder folder;  // as in Penn-Fudan
  folder.image("PNGImages/a.png", 6, 4)
      .mask("PedMasks/a_mask.png", {"110022", "110022", "110000", "110000"});
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("object 0 0 2 4", "object 4 0 2 2"));
  EXPECT_EQ(splits[0].data->annotations[0].shape.kind, coco::ShapeKind::mask);
  EXPECT_EQ(splits[0].data->annotations[0].area, 8);
  EXPECT_THAT(folder.found(), IsEmpty());
}

TEST(Masks, ReadsConnectedPartsAsObjects) {
  Folder folder;
  folder.image("images/a.jpg", 6, 4)
      .image("images/b.jpg", 6, 4)
      .mask("masks/a.png", {"110001", "110000", "000000", "000110"})
      .mask("masks/b.png", {"000000", "000000", "000000", "000000"})
      .file("classes.txt", "cell\n");
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("cell 0 0 2 2", "cell 3 3 2 1", "cell 5 0 1 1"));
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg", "b.jpg"));
}

TEST(Masks, ReadsValuesAsClasses) {
  Folder folder;
  folder.image("images/train/a.jpg", 6, 2)
      .mask("masks/train/a.png", {"110022", "000003"})
      .file("classes.txt", "dog\ncat\n");
  const auto splits = folder.read();
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 0 0 2 1", "cat 4 0 2 1"));
  EXPECT_THAT(folder.examples("label-class"), HasSubstr("masks/train/a.png: value 3"));
}

TEST(Masks, ReadsClassesFromTable) {
  Folder folder;
  folder.image("images/a.jpg", 6, 2)
      .mask("masks/a.png", {"110022", "000003"})
      .file("instances.csv",
            "mask,value,class,crowd\nmasks/a.png,1,\"big, dog\",0\nmasks/a.png,2,cat,1\n"
            "masks/a.png,3,cat,0\n")
      .file("classes.txt", "cat\nbig, dog\n");
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("big, dog 0 0 2 1", "cat 4 0 2 1", "cat 5 1 1 1"));
  EXPECT_TRUE(splits[0].data->annotations[1].crowd);
  EXPECT_FALSE(splits[0].data->annotations[2].crowd);
  EXPECT_THAT(folder.found(), IsEmpty());
}

TEST(Masks, ReadsOneFilePerObject) {
  Folder bowl;  // as in the 2018 Data Science Bowl
  bowl.image("x1/images/x1.png", 4, 2)
      .mask("x1/masks/aa.png", {"1100", "0000"})
      .mask("x1/masks/bb.png", {"0001", "0011"})
      .image("x2/images/x2.png", 4, 2)
      .mask("x2/masks/cc.png", {"0000", "0001"});
  const auto splits = bowl.read();
  EXPECT_THAT(boxes_of(splits[0]),
              ElementsAre("object 0 0 2 1", "object 2 0 2 2", "object 3 1 1 1"));
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("x1/images/x1.png", "x2/images/x2.png"));

  Folder beside;
  beside.image("images/1.jpg", 4, 2)
      .image("images/2.jpg", 4, 2)
      .mask("masks/1/1.png", {"1100", "0000"})
      .mask("masks/1/2.png", {"0000", "0000"})
      .mask("masks/2/1.png", {"0001", "0000"});
  EXPECT_THAT(boxes_of(beside.read()[0]), ElementsAre("object 0 0 2 1", "object 3 0 1 1"));
  EXPECT_THAT(beside.examples("mask-unreadable"), HasSubstr("masks/1/2.png"));
}

TEST(Masks, ReadsCityscapesValues) {
  const auto picture = png_of_values(4, 1, {26001, 24003, 7, 24});
  Folder folder;
  folder.image("leftImg8bit/train/ulm/ulm_0_leftImg8bit.png", 4, 1)
      .file("gtFine/train/ulm/ulm_0_gtFine_instanceIds.png", picture)
      .file("gtFine/train/ulm/ulm_0_gtFine_labelIds.png", picture)
      .file("gtFine/train/ulm/ulm_0_gtFine_polygons.json", "{}");
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("person 3 0 1 1", "person 1 0 1 1", "car 0 0 1 1"));
  EXPECT_TRUE(splits[0].data->annotations[0].crowd);
  EXPECT_FALSE(splits[0].data->annotations[1].crowd);
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("ulm/ulm_0_leftImg8bit.png"));
  EXPECT_THAT(folder.found(), IsEmpty());
}

TEST(Masks, ReadsBreedFromPetTrimaps) {
  Folder folder;
  folder.image("images/Maine_Coon_12.jpg", 4, 2)
      .mask("annotations/trimaps/Maine_Coon_12.png", {"2333", "2311"});
  EXPECT_THAT(boxes_of(folder.read()[0]), ElementsAre("Maine_Coon 2 1 2 1"));
}

TEST(Masks, ReadsColorsAsObjects) {
  cv::Mat picture(2, 4, CV_8UC3, cv::Scalar(0, 0, 0));
  picture.at<cv::Vec3b>(0, 0) = {255, 0, 0};
  picture.at<cv::Vec3b>(1, 3) = {0, 0, 7};
  Folder folder;
  folder.image("images/a.jpg", 4, 2).file("masks/a.png", coco::encode_png(picture));
  EXPECT_THAT(boxes_of(folder.read()[0]), ElementsAre("object 3 1 1 1", "object 0 0 1 1"));
}

TEST(Masks, ReportsUnusableMasks) {
  Folder folder;
  for (const std::string name : {"a", "b", "c", "d"}) folder.image("images/" + name + ".jpg", 4, 2);
  folder.mask("masks/a.png", {"12", "00"})
      .file("masks/b.png", "no PNG")
      .mask("masks/c.png", {"1200", "0000"})
      .mask("masks/e.png", {"1200", "0000"});
  const auto splits = folder.read();
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg", "c.jpg"));
  EXPECT_THAT(folder.found(),
              ElementsAre("image-unannotated 1", "label-file-unreadable 1", "label-size 1",
                          "label-without-image 1", "mask-unreadable 1"));
  EXPECT_THAT(folder.examples("mask-unreadable"), HasSubstr("masks/a.png: 2 x 2"));
}

}  // namespace
}  // namespace millrace::formats
