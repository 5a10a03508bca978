// CSV tables of boxes, with named columns and without a header.
#include "tests/support/thrown.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Csv, FindsColumnsByName) {
  const char* tables[] = {
      "filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,60,40,dog,10,5,30,25\n",
      "image,label,x,y,w,h\na.jpg,dog,10,5,20,20\n",
      "Image Name;Class Name;X;Y;Width;Height\na.jpg;dog;10;5;20;20\n",
      "image_id,width,height,bbox,label\na,60,40,\"[10.0, 5.0, 20.0, 20.0]\",dog\n",
      "C:\\photos\\a.jpg,10,5,30,25,dog\n",
      "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\n"
      "a,x,dog,1,0.16666666666666666,0.5,0.125,0.625,0\n"};
  for (const auto* table : tables) {
    Folder folder;
    folder.image("images/a.jpg", 60, 40).file("boxes.csv", table);
    const auto splits = folder.read();
    ASSERT_EQ(splits.size(), 1u) << table;
    EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 10 5 20 20")) << table;
    EXPECT_THAT(folder.found(), IsEmpty()) << table;
  }
}

TEST(Csv, ReadsSplitsAndClassLists) {
  Folder folder;
  folder.image("img/a.jpg", 60, 40)
      .image("img/b.jpg", 60, 40)
      .image("img/c.jpg", 60, 40)
      .file("train_annotations.csv", "img/a.jpg,1,2,3,4,dog\nimg/b.jpg,,,,,\n")
      .file("val_annotations.csv", "img/c.jpg,1,2,3,4,cat\n")
      .file("classes.csv", "dog,0\ncat,1\n");
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg", "b.jpg"));
  EXPECT_THAT(names_of_classes(splits[0]), ElementsAre("dog", "cat"));
  EXPECT_THAT(boxes_of(splits[1]), ElementsAre("cat 1 2 2 2"));
}

TEST(Csv, ReportsFaultsWithFileAndLine) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .image("b.jpg", 60, 40)
      .file("boxes.csv",
            "image,class,xmin,ymin,xmax,ymax\na.jpg,dog,1,2,3,4\na.jpg,dog,x,2,3,4\nc.jpg,dog,1,2,"
            "3,4\n"
            "a.jpg,,1,2,3,4\na.jpg,dog,9,9,3,4\na.jpg,dog,1,2,300,4\n,dog,1,2,3,4\n");
  EXPECT_THAT(boxes_of(folder.read()[0]),
              ElementsAre("dog 1 2 2 2", "dog 3 4 6 5", "dog 1 2 299 2"));
  EXPECT_THAT(folder.found(),
              ElementsAre("image-unannotated 1", "label-outside 1", "label-swapped 1",
                          "label-unreadable 3", "label-without-image 1"));
  EXPECT_THAT(folder.examples("label-unreadable"), HasSubstr("boxes.csv:3: 'x'"));
  EXPECT_THAT(folder.examples("label-without-image"), HasSubstr("boxes.csv:4: 'c.jpg'"));
}

TEST(Csv, ReadsGroupsAsCrowds) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .file("b.csv", "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf\na,/m/01,0,.5,0,.5,1\n")
      .file("class-descriptions.csv", "/m/01,Person\n");
  const auto splits = folder.read();
  EXPECT_TRUE(splits[0].data->annotations[0].crowd);
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("Person 0 0 30 20"));
}

TEST(Csv, RejectsTwoTablesForOneSplit) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .file("one.csv", "a.jpg,1,2,3,4,dog\n")
      .file("two.csv", "a.jpg,1,2,3,4,dog\n");
  EXPECT_THAT(testing::message_of([&] { folder.read(); }), HasSubstr("one.csv and two.csv"));
}

}  // namespace
}  // namespace millrace::formats
