// Annotation files: what is read, and how each fault is told.
#include "millrace/coco/data/annotations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "tests/support/data.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A small data set whose parts can be replaced.
struct Text {
  std::string images = R"([{"id": 2, "file_name": "b.jpg", "width": 4, "height": 3},
                           {"file_name": "a.jpg", "height": 5, "id": 1, "width": 6, "license": null}])";
  std::string annotation = R"("bbox": [1, 2, 3.5, 2], "image_id": 1, "category_id": 7)";
  std::string more;
  std::string categories =
      R"([{"id": 9, "name": "cat"}, {"id": 7, "name": "d\u00f6g", "supercategory": "x"}])";

  std::string json() const {
    return fmt::format(R"({{"info": {{"year": 2017}}, "annotations": [{{{}, "id": 41}}{}],
"images": {}, "categories": {}, "licenses": []}})",
                       annotation, more, images, categories);
  }
  std::shared_ptr<const Dataset> read() const { return parse_dataset(json(), "x.json"); }
  std::string message() const { return message_of(json()); }

  static std::string message_of(const std::string& json) {
    return testing::message_of([&] { parse_dataset(json, "x.json"); });
  }
};

std::string with(const std::string& segmentation) {
  Text text;
  text.annotation += R"(, "segmentation": )" + segmentation;
  return text.message();
}

TEST(Annotations, AreReadInAnyOrderOfFieldsAndSections) {
  const auto set = Text{}.read();
  EXPECT_EQ(set->source, "x.json");
  ASSERT_EQ(set->images.size(), 2U);
  EXPECT_EQ(set->images[0].id, 1);
  EXPECT_EQ(set->text(set->images[0].file_name), "a.jpg");
  EXPECT_EQ(set->images[0].width, 6);
  EXPECT_EQ(set->images[0].height, 5);
  EXPECT_EQ(set->images[1].count, 0U);
  ASSERT_EQ(set->objects(set->images[0]).size(), 1U);
  const Annotation& one = set->objects(set->images[0])[0];
  EXPECT_EQ(one.id, 41);
  EXPECT_THAT(one.bbox, ElementsAre(1, 2, 3.5, 2));
  EXPECT_EQ(one.area, 7);  // the box's, where there is no other
  EXPECT_FALSE(one.crowd);
  EXPECT_EQ(set->text(set->categories[0].name), "d\u00f6g");
  EXPECT_EQ(set->category_index(9), 1);
  EXPECT_EQ(set->category_index(8), -1);
  EXPECT_EQ(set->find_image(2), &set->images[1]);
  EXPECT_EQ(set->find_image(3), nullptr);
}

TEST(Annotations, StandByImageInTheOrderOfTheFile) {
  Text text;
  for (const auto& [id, image] : {std::pair(50, 2), {30, 1}, {40, 2}, {20, 1}}) {
    text.more += fmt::format(
        R"(, {{"id": {}, "image_id": {}, "category_id": 9, "bbox": [0,0,0,0]}})", id, image);
  }
  const auto set = text.read();
  std::vector<std::int64_t> ids;
  for (const auto& one : set->annotations) ids.push_back(one.id);
  EXPECT_THAT(ids, ElementsAre(41, 30, 20, 50, 40));
  EXPECT_EQ(set->images[1].first, 3U);
}

TEST(Annotations, IdsGoUpTo2To63) {
  Text text;
  text.more = R"(, {"id": 9223372036854775807, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1]},
                   {"id": 9223372036854775806, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1]})";
  EXPECT_EQ(text.read()->annotations[1].id, INT64_MAX);
}

TEST(Annotations, ShapesArePolygonsRunLengthsOrNothing) {
  Text text;
  text.annotation +=
      R"(, "segmentation": [[0, 0, 4, 0, 4, 3, 0, 3], [0.7, 1, 2, 1, 2, 2]], "iscrowd": 0)";
  const auto field =
      R"(, {{"id": {}, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1], "iscrowd": 1, "segmentation": {}}})";
  int id = 100;
  for (const auto* shape : {R"({"size": [5, 6], "counts": [2, 3, 25]})",
                            R"({"counts": "23i0", "size": [5, 6]})", "[]", "null"}) {
    text.more += fmt::format(fmt::runtime(field), id++, shape);
  }
  const auto set = text.read();
  const auto& all = set->annotations;
  const auto polygons = set->segmentation(all[0]);
  EXPECT_THAT(std::get<std::vector<Polygon>>(polygons),
              ElementsAre(Polygon{0, 0, 4, 0, 4, 3, 0, 3}, Polygon{0.7, 1, 2, 1, 2, 2}));
  EXPECT_NEAR(all[0].area, 12 + 0.65, 1e-12);
  const Rle rle{5, 6, {2, 3, 25}};
  EXPECT_EQ(std::get<Rle>(set->segmentation(all[1])), rle);
  EXPECT_EQ(std::get<Rle>(set->segmentation(all[2])), rle);
  EXPECT_EQ(all[1].area, 3);
  EXPECT_TRUE(all[1].crowd);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(set->segmentation(all[3])));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(set->segmentation(all[4])));
}

TEST(Annotations, WhatIsNoJsonIsTold) {
  EXPECT_THAT(Text::message_of(""), HasSubstr("x.json: the file is empty"));
  EXPECT_THAT(Text::message_of(" \n"), HasSubstr("the file is empty"));
  EXPECT_THAT(Text::message_of("hello"), HasSubstr("x.json: line 1, byte 0: not JSON"));
  EXPECT_THAT(Text::message_of("[1, 2]"),
              HasSubstr("line 1, byte 0: not JSON of the expected form"));
  EXPECT_THAT(Text::message_of("{\"images\": [\xff]}"),
              HasSubstr("line 1, byte 12: not JSON: the text is not UTF-8"));
  for (const std::size_t before : {0, 1, 2, 3, 4, 5, 1 << 20, (1 << 20) + 1, (3 << 20) + 2}) {
    std::string text = "{\"";
    while (text.size() < before) text += "\u20ac";
    const auto byte = fmt::format("byte {}: not JSON: the text is not UTF-8", text.size());
    EXPECT_THAT(Text::message_of(text + "\xc3(\": 1}"), HasSubstr(byte));
  }
  EXPECT_THAT(Text::message_of(Text{}.json() + " }"), HasSubstr("text goes on behind the end"));
  const std::string whole = Text{}.json();
  EXPECT_THAT(Text::message_of(whole.substr(0, whole.size() / 2)),
              HasSubstr("the file is truncated"));
}

TEST(Annotations, MissingPartsAreTold) {
  EXPECT_THAT(Text::message_of("{}"), HasSubstr("'images' is missing"));
  EXPECT_THAT(Text::message_of(R"({"images": []})"), HasSubstr("'annotations' is missing"));
  EXPECT_THAT(Text::message_of(R"({"images": [], "annotations": []})"),
              HasSubstr("'categories' is missing"));
  Text text;
  text.images = R"([{"id": 1, "file_name": "a", "width": 6}])";
  EXPECT_THAT(text.message(), HasSubstr("images[0] (id 1): 'height' is missing"));
  text = {};
  text.annotation = R"("image_id": 1, "category_id": 7)";
  EXPECT_THAT(text.message(), HasSubstr("annotations[0] (id 41): 'bbox' is missing"));
  text = {};
  text.categories = R"([{"id": 1}])";
  EXPECT_THAT(text.message(), HasSubstr("categories[0] (id 1): 'name' is missing"));
}

TEST(Annotations, WrongTypesAreToldWithLineByteAndId) {
  Text text;
  text.annotation = R"("image_id": "1")";
  EXPECT_EQ(text.message(),
            "x.json: line 1, byte 54: annotations[0] (id 41): 'image_id' is not an integer");
  text.annotation = R"("image_id": 1.5)";
  EXPECT_THAT(text.message(), HasSubstr("'image_id' is not an integer"));
  text.annotation = R"("image_id": 9223372036854775808)";
  EXPECT_THAT(text.message(), HasSubstr("'image_id' is not an integer below 2^63"));
  text.annotation = R"("iscrowd": "no")";
  EXPECT_THAT(text.message(), HasSubstr("'iscrowd' is not a finite number"));
  text.annotation = R"("area": [])";
  EXPECT_THAT(text.message(), HasSubstr("'area' is not a finite number"));
  text = {};
  text.images = R"({"id": 1})";
  EXPECT_THAT(text.message(), HasSubstr("x.json: line 2, byte 121: 'images' is not an array"));
  text.images = "[7]";
  EXPECT_THAT(text.message(), HasSubstr("images[0] is not an object"));
  text.images = R"([{"id": 1, "file_name": 3}])";
  EXPECT_THAT(text.message(), HasSubstr("images[0] (id 1): 'file_name' is not a string"));
  text.images = R"([{"id": 1, "width": 0}])";
  EXPECT_THAT(text.message(), HasSubstr("'width' is 0; an image has 1 to"));
}

TEST(Annotations, BadBoxesAreTold) {
  const auto message = [](const std::string& box) {
    Text text;
    text.annotation = R"("image_id": 1, "category_id": 7, "bbox": )" + box;
    return text.message();
  };
  EXPECT_EQ(message("[5, 5, 0, 0]"), "");  // the training pipeline counts and skips it
  EXPECT_THAT(message("[0, 0, -1, 5]"),
              HasSubstr("annotations[0] (id 41): 'bbox' has a negative size: -1 x 5"));
  EXPECT_THAT(message("[0, 0, 1]"), HasSubstr("'bbox' has 3 numbers, not 4"));
  EXPECT_THAT(message("[0, 0, 1, 1, 1]"), HasSubstr("'bbox' has 5 numbers, not 4"));
  EXPECT_THAT(message("[]"), HasSubstr("'bbox' is empty"));
  EXPECT_THAT(message("[0, 0, 1, NaN]"), HasSubstr("'bbox' is not a finite number"));
  EXPECT_THAT(message("[0, 0, 1, 1e999]"), HasSubstr("'bbox' is not a finite number"));
  EXPECT_THAT(message("[0, 0, 1, null]"), HasSubstr("'bbox' is not a finite number"));
}

TEST(Annotations, BadShapesAreTold) {
  EXPECT_THAT(with("[[1, 2, 3, 4]]"),
              HasSubstr("(id 41): polygon 0 has 4 numbers; three or more points"));
  EXPECT_THAT(with("[[0,0,1,1,2,2],[1,2,3,4,5,6,7]]"), HasSubstr("polygon 1 has 7 numbers"));
  EXPECT_THAT(with("[[]]"), HasSubstr("polygon 0 has 0 numbers"));
  EXPECT_THAT(with("[1,2,3,4,5,6]"), HasSubstr("'polygon 0' is not an array"));
  EXPECT_THAT(with("[[1,2,3,4,5,\"6\"]]"), HasSubstr("'polygon 0' holds no finite number here"));
  EXPECT_THAT(with("true"), HasSubstr("neither polygons nor run lengths"));
  EXPECT_THAT(with("{}"), HasSubstr("'size' is missing"));
  EXPECT_THAT(with(R"({"size": [5, 6]})"), HasSubstr("'counts' is missing"));
  EXPECT_THAT(with(R"({"size": [5, 6.5], "counts": []})"),
              HasSubstr("'size' is not two sizes in pixels"));
  EXPECT_THAT(with(R"({"size": [5, 6], "counts": [29]})"),
              HasSubstr("the runs do not add up to 5 x 6 pixels"));
  EXPECT_THAT(with(R"({"size": [5, 6], "counts": [31]})"),
              HasSubstr("the runs do not add up to 5 x 6 pixels"));
  EXPECT_THAT(with(R"({"size": [5, 6], "counts": [-1, 31]})"), HasSubstr("a run is negative"));
  EXPECT_THAT(with(R"({"size": [5, 6], "counts": "5"})"),
              HasSubstr("the runs add up to 5 pixels; 5 x 6 are 30"));
  EXPECT_THAT(with(R"({"size": [5, 6], "counts": "5 "})"),
              HasSubstr("counts: byte 1: no character"));
  EXPECT_THAT(with(R"({"size": [6, 5], "counts": [30]})"),
              HasSubstr("(id 41): its mask is 6 x 5, its image 5 x 6 (height x width)"));
}

TEST(Annotations, WhatOnePartSaysOfAnotherIsChecked) {
  Text text;
  text.annotation = R"("image_id": 3, "category_id": 7, "bbox": [0,0,1,1])";
  EXPECT_THAT(text.message(),
              HasSubstr("line 1, byte 41: annotations[0] (id 41): there is no image with id 3"));
  text.annotation = R"("image_id": 1, "category_id": 8, "bbox": [0,0,1,1])";
  EXPECT_THAT(text.message(), HasSubstr("annotations[0] (id 41): there is no category with id 8"));
  text = {};
  text.more = R"(, {"id": 41, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1]})";
  EXPECT_THAT(text.message(),
              HasSubstr("annotations[1] (id 41): annotations[0] has this id already"));
  text = {};
  text.categories = R"([{"id": 7, "name": "a"}, {"id": 7, "name": "b"}])";
  EXPECT_THAT(text.message(), HasSubstr("category id 7 is there twice"));
  text.images =
      R"([{"id": 1, "file_name": "a", "width": 6, "height": 5}, {"id": 1, "file_name": "a", "width": 6, "height": 5}])";
  EXPECT_THAT(text.message(), HasSubstr("image id 1 is there twice"));
}

TEST(Annotations, AFileThatIsNotThereIsTold) {
  EXPECT_THROW(read_dataset("no/such/file.json"), Error);
}

TEST(Annotations, DamagedTextGivesADataSetOrAnError) {
  Text text;
  text.annotation += R"(, "segmentation": [[0, 0, 4, 0, 4, 3, 0, 3]])";
  text.more =
      R"(, {"id": 5, "image_id": 2, "category_id": 7, "bbox": [0,0,1,1], "segmentation": {"size": [3, 4], "counts": "34"}})";
  const std::string whole = text.json();
  EXPECT_THAT(Text::message_of(whole), HasSubstr("the runs add up to 7"));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    if (i % 4 == 0) damaged.resize(random() % whole.size());
    for (unsigned flips = random() % 4; flips > 0 && !damaged.empty(); --flips) {
      damaged[random() % damaged.size()] =
          static_cast<char>(i % 2 ? random() : "{}[]\",:0e-"[random() % 10]);
    }
    Text::message_of(damaged);  // anything but an Error leaves it
  }
}

TEST(Annotations, OfRealPhotosAreRead) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto set =
      read_dataset(testing::data_folder() / "coco_mini/annotations/instances_train2017.json");
  EXPECT_EQ(set->images.size(), 88U);
  EXPECT_EQ(set->categories.size(), 80U);
  std::size_t polygons = 0;
  for (const auto& one : set->annotations) {
    polygons += one.shape.kind == ShapeKind::polygons;
  }
  EXPECT_GT(polygons, set->annotations.size() * 9 / 10);
}

}  // namespace
}  // namespace millrace::coco
