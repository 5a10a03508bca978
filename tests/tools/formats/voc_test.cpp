// Pascal VOC files as its tools write them, and common mistakes.
#include <sys/stat.h>

#include <chrono>

#include "millrace/tools/formats/files/voc_file.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string voc_xml(const std::string& objects, int width = 60, int height = 40,
                    const std::string& name = "a.jpg") {
  return fmt::format(
      "<annotation>\n<folder>x</folder>\n<filename>{}</filename>\n<size><width>{}</width><height>{}"
      "</height><depth>3</depth></size>\n{}</annotation>\n",
      name, width, height, objects);
}

std::string voc_object(const std::string& name, const std::string& box,
                       const std::string& more = "") {
  std::vector<std::string> words;
  std::istringstream in(box);
  for (std::string word; in >> word;) words.push_back(word);
  return fmt::format(
      "<object><name>{}</name>{}<bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</"
      "ymax>"
      "</bndbox></object>\n",
      name, more, words[0], words[1], words[2], words[3]);
}

TEST(Voc, ReadsOneBasedPixels) {
  Folder folder;
  folder.image("JPEGImages/a.jpg", 60, 40)
      .file("Annotations/a.xml",
            voc_xml(voc_object("dog", "1 1 60 40") + voc_object("cat", "11 21 30 40")));
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 1u);
  EXPECT_EQ(splits[0].name, kWhole);
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 0 0 60 40", "cat 10 20 20 20"));
  EXPECT_THAT(names_of_classes(splits[0]), ElementsAre("cat", "dog"));
  EXPECT_EQ(splits[0].images, folder.path() / "JPEGImages");
  EXPECT_THAT(folder.found(), IsEmpty());
}

/// A file in the format of LabelImg 1.8.6.
constexpr const char* kLabelImg =
    "<annotation>\n\t<folder>photos</folder>\n"
    "\t<filename>a.jpg</filename>\n\t<path>C:\\photos\\a.jpg</path>\n\t<source>\n"
    "\t\t<database>Unknown</database>\n\t</source>\n\t<size>\n\t\t<width>60</width>\n"
    "\t\t<height>40</height>\n\t\t<depth>3</depth>\n\t</size>\n\t<segmented>0</segmented>\n"
    "\t<object>\n\t\t<name>na\u00EFve cat</name>\n\t\t<pose>Unspecified</pose>\n"
    "\t\t<truncated>1</truncated>\n\t\t<difficult>1</difficult>\n\t\t<bndbox>\n"
    "\t\t\t<xmin>10</xmin>\n\t\t\t<ymin>5</ymin>\n\t\t\t<xmax>60</xmax>\n"
    "\t\t\t<ymax>40</ymax>\n\t\t</bndbox>\n\t</object>\n</annotation>\n";

/// A file in CVAT's format: fractional numbers, attributes, no pose.
constexpr const char* kCvat =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<annotation>\n"
    "  <folder></folder>\n  <filename>a.jpg</filename>\n"
    "  <source><database>Unknown</database><annotation>Unknown</annotation><image>Unknown</image>"
    "</source>\n  <size><width>60</width><height>40</height><depth></depth></size>\n"
    "  <segmented>0</segmented>\n  <object>\n    <name>dog</name>\n    <occluded>0</occluded>\n"
    "    <bndbox><xmin>0.0</xmin><ymin>4.5</ymin><xmax>30.25</xmax><ymax>20.0</ymax></bndbox>\n"
    "    <attributes><attribute><name>rotation</name><value>0.0</value></attribute></attributes>\n"
    "  </object>\n</annotation>\n";

TEST(Voc, ReadsFilesFromLabellingTools) {
  Folder image;
  image.image("a.jpg", 60, 40).file("a.xml", kLabelImg);
  EXPECT_THAT(boxes_of(image.read()[0]), ElementsAre("na\u00EFve cat 9 4 51 36"));
  EXPECT_THAT(image.found(), ElementsAre("label-difficult 1"));
  Folder cvat;  // coordinates start at 0, so boxes become a pixel larger; this is not reported
  cvat.image("JPEGImages/a.jpg", 60, 40)
      .file("Annotations/a.xml", kCvat)
      .file("ImageSets/Main/default.txt", "a\n")
      .file("labelmap.txt", "# label:color_rgb:parts:actions\ndog:128,0,0::\n");
  const auto splits = cvat.read();
  EXPECT_EQ(splits[0].name, kWhole);
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog -1 3.5 31.25 16.5"));
  EXPECT_THAT(cvat.found(), IsEmpty());
}

TEST(Voc, ReadsSplitsFromImageSets) {
  Folder folder;
  for (const std::string name : {"a", "b", "c", "d"})
    folder.image("JPEGImages/" + name + ".jpg", 60, 40)
        .file("Annotations/" + name + ".xml",
              voc_xml(voc_object("dog", "1 1 9 9"), 60, 40, name + ".jpg"));
  folder.image("JPEGImages/e.jpg", 60, 40)
      .file("ImageSets/Main/train.txt", "a\nb\n")
      .file("ImageSets/Main/val.txt", "c\nnowhere\n")
      .file("ImageSets/Main/trainval.txt", "a\nb\nc\n")
      .file("ImageSets/Main/test.txt", "e\n")
      .file("ImageSets/Main/dog_train.txt", "a  1\nb -1\n");
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg", "b.jpg"));
  EXPECT_EQ(splits[1].name, "val");
  EXPECT_THAT(names_of_images(splits[1]), ElementsAre("c.jpg"));
  EXPECT_THAT(folder.found(),
              ElementsAre("image-unannotated 1", "label-unlisted 1", "label-without-image 1"));
  EXPECT_THAT(folder.examples("label-without-image"), HasSubstr("ImageSets/Main/val.txt:2"));
}

TEST(Voc, ReadsFilesBesideImages) {
  Folder folder;  // as Roboflow exports it
  folder.image("train/a.jpg", 60, 40).file("train/a.xml", voc_xml(voc_object("dog", "1 1 9 9")));
  folder.image("valid/a.jpg", 60, 40).file("valid/a.xml", voc_xml(voc_object("cat", "1 1 9 9")));
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits[1].name, "val");
  EXPECT_EQ(splits[1].images, folder.path() / "valid");
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 0 0 9 9"));
  EXPECT_THAT(boxes_of(splits[1]), ElementsAre("cat 0 0 9 9"));
}

TEST(Voc, ReportsFaultsWithFileAndLine) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .image("b.jpg", 60, 40)
      .image("c.jpg", 60, 40)
      .file("a.xml", voc_xml(voc_object("dog", "1 1 90 9") + voc_object("dog", "30 30 20 9") +
                             voc_object("dog", "x 1 2 2") + voc_object("", "1 1 2 2") +
                             "<object><name>dog</name></object>\n" +
                             voc_object("dog", "5 5 4 9", "<difficult>1</difficult>")))
      .file("b.xml", voc_xml(voc_object("dog", "1 1 9 9"), 30, 20))
      .file("c.xml", "<annotation><object></annotation>")
      .file("d.xml", voc_xml("", 60, 40, "d.jpg"));
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0], "a.jpg"),
              ElementsAre("dog 0 0 90 9", "dog 19 8 11 22", "dog 4 4 0 5"));
  EXPECT_THAT(names_of_images(splits[0]), ElementsAre("a.jpg", "b.jpg"));
  EXPECT_THAT(folder.found(),
              ElementsAre("label-difficult 1", "label-empty 1", "label-file-unreadable 1",
                          "label-outside 1", "label-size 1", "label-swapped 1",
                          "label-unreadable 3", "label-without-image 1"));
  EXPECT_THAT(folder.examples("label-outside"), HasSubstr("a.xml:5: 30.0 pixels"));
  EXPECT_THAT(folder.examples("label-unreadable"), HasSubstr("a.xml:7: <xmin>"));
  EXPECT_THAT(folder.examples("label-size"), HasSubstr("b.jpg is 60 x 40"));
  EXPECT_THAT(folder.examples("label-file-unreadable"), HasSubstr("line 1"));
  EXPECT_THAT(folder.examples("label-without-image"), HasSubstr("'d.jpg'"));
}

TEST(Voc, AssignsMasksToMatchingBoxes) {
  Folder folder;
  folder.image("JPEGImages/a.jpg", 6, 4)
      .file("Annotations/a.xml",
            voc_xml(voc_object("cat", "5 1 6 2") + voc_object("dog", "1 1 2 4"), 6, 4))
      .mask("SegmentationObject/a.png", {"110022", "110022", "110000", "110330"});
  const auto splits = folder.read();
  const auto& data = *splits[0].data;
  const auto objects = data.objects(data.images[0]);
  ASSERT_EQ(objects.size(), 2u);
  const auto cat = std::get<coco::Rle>(data.segmentation(objects[0])),
             dog = std::get<coco::Rle>(data.segmentation(objects[1]));
  EXPECT_EQ(coco::bounding_box(cat), (Box{4, 0, 6, 2}));
  EXPECT_EQ(coco::bounding_box(dog), (Box{0, 0, 2, 4}));
  EXPECT_THAT(folder.found(), ElementsAre("mask-unmatched 1"));
}

TEST(Voc, ReadsPolygons) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .file("a.xml",
            voc_xml(voc_object("dog", "2 2 9 9",
                               "<polygon><x1>1</x1><y1>1</y1><x2>9</x2><y2>1</y2><x3>9</x3>"
                               "<y3>9</y3></polygon>")));
  const auto splits = folder.read();
  const auto& data = *splits[0].data;
  EXPECT_THAT(std::get<std::vector<coco::Polygon>>(data.segmentation(data.annotations[0])),
              ElementsAre(ElementsAre(1, 1, 9, 1, 9, 9)));
}

TEST(Voc, ReadsLargePolygonsQuickly) {
  constexpr int kPoints = 100'000;
  std::string points;
  for (int i = 1; i <= kPoints; ++i)
    points += fmt::format("<x{0}>{1}</x{0}><y{0}>{2}</y{0}>", i, i % 60, i % 40);
  const auto start = std::chrono::steady_clock::now();
  const auto file =
      parse_voc(voc_xml(voc_object("dog", "1 1 60 40", "<polygon>" + points + "</polygon>")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  ASSERT_EQ(file.objects.size(), 1U);
  ASSERT_EQ(file.objects[0].polygons.size(), 1U);
  EXPECT_EQ(file.objects[0].polygons[0].size(), std::size_t{2 * kPoints});
  EXPECT_THAT(file.objects[0].polygons[0], Contains(59));
}

TEST(Voc, IgnoresPipesAndDevices) {
  Folder folder;
  folder.image("JPEGImages/a.jpg", 60, 40)
      .image("JPEGImages/b.jpg", 60, 40)
      .image("JPEGImages/c.jpg", 60, 40)
      .file("Annotations/a.xml", voc_xml(voc_object("dog", "1 1 60 40")));
  ASSERT_EQ(::mkfifo((folder.path() / "Annotations/b.xml").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", folder.path() / "Annotations/c.xml");
  const auto splits = folder.read();
  ASSERT_EQ(splits.size(), 1U);
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 0 0 60 40"));
  EXPECT_THAT(folder.found(), ElementsAre("image-unannotated 2"));
}

}  // namespace
}  // namespace millrace::formats
