// LabelMe files in the format of version 5.
#include "millrace/base/base64.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string labelme_shape(const std::string& label, const std::string& points,
                          const std::string& type = "polygon", const std::string& group = "null",
                          const std::string& mask = "null") {
  return fmt::format(R"({{
      "label": "{}",
      "points": {},
      "group_id": {},
      "description": "",
      "shape_type": "{}",
      "flags": {{}},
      "mask": {}
    }})",
                     label, points, group, type, mask);
}

std::string labelme_json(const std::vector<std::string>& shapes, int width = 60, int height = 40,
                         const std::string& image = "a.jpg") {
  return fmt::format(R"({{
  "version": "5.5.0",
  "flags": {{}},
  "shapes": [
    {}
  ],
  "imagePath": "{}",
  "imageData": "AAAA",
  "imageHeight": {},
  "imageWidth": {}
}})",
                     fmt::join(shapes, ",\n    "), image, height, width);
}

TEST(LabelMe, ReadsEachShapeType) {
  const auto picture = png_of_values(2, 3, {1, 0, 1, 1, 0, 1});
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .file("a.json", labelme_json({labelme_shape("dog", "[[1,1],[9,1],[9,9]]"),
                                    labelme_shape("cat", "[[20,30],[10,5]]", "rectangle"),
                                    labelme_shape("ball", "[[30,20],[36,28]]", "circle"),
                                    labelme_shape("leaf", "[[5,6],[6,8]]", "mask", "null",
                                                  "\"" + to_base64(picture) + "\"")}));
  const auto splits = folder.read();
  EXPECT_THAT(names_of_classes(splits[0]), ElementsAre("ball", "cat", "dog", "leaf"));
  const auto boxes = boxes_of(splits[0]);
  ASSERT_EQ(boxes.size(), 4u);
  EXPECT_EQ(boxes[0], "dog 1 1 8 8");
  EXPECT_EQ(boxes[1], "cat 10 5 10 25");
  EXPECT_EQ(boxes[3], "leaf 5 6 2 3");
  const auto& data = *splits[0].data;
  EXPECT_EQ(data.annotations[1].shape.kind, coco::ShapeKind::none);
  EXPECT_NEAR(data.annotations[2].area, 100 * 3.14159, 10);
  const auto leaf = std::get<coco::Rle>(data.segmentation(data.annotations[3]));
  EXPECT_EQ(coco::area(leaf), 4u);
  EXPECT_EQ(coco::bounding_box(leaf), (Box{5, 6, 7, 9}));
  EXPECT_THAT(folder.found(), IsEmpty());
}

TEST(LabelMe, PlacesMasksLikeLabelMe) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .file("a.json",
            labelme_json({labelme_shape(
                "leaf", "[[5, 6], [6, 8]]", "mask", "null",
                "\"iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAAAAACcgYFdAAAAEUlEQVR4nGNgZGBiYGRgYAQAACIABh3Y"
                "QT0AAAAASUVORK5CYII=\"")}));
  const auto splits = folder.read();
  const auto& data = *splits[0].data;
  std::vector<std::uint8_t> bitmap(60 * 40);
  coco::decode(std::get<coco::Rle>(data.segmentation(data.annotations[0])), bitmap.data());
  std::vector<std::pair<int, int>> inside;
  for (int i = 0; i < 60 * 40; ++i)
    if (bitmap[static_cast<std::size_t>(i)] != 0) inside.emplace_back(i % 60, i / 60);
  using Pixels = std::vector<std::pair<int, int>>;
  EXPECT_EQ(inside, (Pixels{{5, 6}, {5, 7}, {6, 7}, {6, 8}}));
}

TEST(LabelMe, JoinsShapesOfSameGroupAndLabel) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .file("a.json",
            labelme_json({labelme_shape("dog", "[[1,1],[9,1],[9,9]]", "polygon", "3"),
                          labelme_shape("cat", "[[1,1],[9,1],[9,9]]", "polygon", "3"),
                          labelme_shape("dog", "[[20,1],[29,1],[29,9]]", "polygon", "3")}));
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 1 1 28 8", "cat 1 1 8 8"));
  const auto& data = *splits[0].data;
  EXPECT_EQ(std::get<std::vector<coco::Polygon>>(data.segmentation(data.annotations[0])).size(),
            2u);
}

TEST(LabelMe, ReportsFaultsWithFileAndLine) {
  Folder folder;
  folder.image("a.jpg", 60, 40)
      .image("b.jpg", 60, 40)
      .image("c.jpg", 60, 40)
      .file("a.json",
            labelme_json(
                {labelme_shape("dog", "[[1,1],[9,1]]"), labelme_shape("dog", "[[1,1]]", "point"),
                 labelme_shape("dog", "[[1,1],[9,9]]", "star"), labelme_shape("dog", "[[1,1],[9]]"),
                 labelme_shape("dog", "[[1,1],[9,9]]", "rectangle")}))
      .file("b.json", "{\"shapes\": [")
      .file("d.json", labelme_json({}, 60, 40, "d.jpg"));
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ElementsAre("dog 1 1 8 8"));
  EXPECT_THAT(folder.found(),
              ElementsAre("image-unannotated 1", "label-file-unreadable 1", "label-no-area 1",
                          "label-unreadable 3", "label-without-image 1"));
  EXPECT_THAT(folder.examples("label-unreadable"), HasSubstr("a.json:5: shapes[0]: "));
  EXPECT_THAT(folder.examples("label-unreadable"),
              HasSubstr("shapes[2]: unknown 'shape_type' 'star'"));
  EXPECT_THAT(folder.examples("label-file-unreadable"), HasSubstr("b.json"));
  EXPECT_THAT(folder.examples("label-without-image"), HasSubstr("'d.jpg'"));
}

TEST(LabelMe, FindsImageDespiteForeignPath) {
  Folder folder;
  folder.image("train/images/a.jpg", 60, 40)
      .file("train/ann/x.json", labelme_json({labelme_shape("dog", "[[1,1],[9,9]]", "rectangle")},
                                             60, 40, R"(C:\\photos\\a.jpg)"));
  const auto splits = folder.read();
  EXPECT_EQ(splits[0].name, "train");
  EXPECT_THAT(boxes_of(splits[0], "a.jpg"), ElementsAre("dog 1 1 8 8"));
}

}  // namespace
}  // namespace millrace::formats
