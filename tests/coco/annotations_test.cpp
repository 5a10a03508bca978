// Annotation files: the values that are read, and how each error is reported.
#include "millrace/coco/data/annotations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <random>

#include "millrace/base/errors.h"
#include "tests/support/data.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::string_literals;

/// The JSON of a small data set, parts of which can be replaced.
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

/// A replaced part of the JSON and the expected message.
struct Fault {
  std::string part, told;
};

/// Applies `put(Text&, part)` for each fault and expects its message; empty = no error.
template <typename F>
void expect_told(const std::vector<Fault>& faults, F put) {
  for (const auto& [part, told] : faults) {
    Text text;
    put(text, part);
    if (told.empty())
      EXPECT_EQ(text.message(), "") << part;
    else
      EXPECT_THAT(text.message(), HasSubstr(told)) << part;
  }
}

TEST(Annotations, AcceptAnyOrderOfFieldsAndSections) {
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
  EXPECT_EQ(one.area, 7);  // area of the box, since the file contains none
  EXPECT_FALSE(one.crowd);
  EXPECT_EQ(set->text(set->categories[0].name), "d\u00f6g");
  EXPECT_EQ(set->category_index(9), 1);
  EXPECT_EQ(set->category_index(8), -1);
  EXPECT_EQ(set->find_image(2), &set->images[1]);
  EXPECT_EQ(set->find_image(3), nullptr);
}

TEST(Annotations, AreGroupedByImageInFileOrder) {
  Text text;
  for (const auto& [id, image] : {std::pair(50, 2), {30, 1}, {40, 2}, {20, 1}})
    text.more += fmt::format(
        R"(, {{"id": {}, "image_id": {}, "category_id": 9, "bbox": [0,0,0,0]}})", id, image);
  const auto set = text.read();
  std::vector<std::int64_t> ids;
  for (const auto& one : set->annotations) ids.push_back(one.id);
  EXPECT_THAT(ids, ElementsAre(41, 30, 20, 50, 40));
  EXPECT_EQ(set->images[1].first, 3U);
}

TEST(Annotations, Accept64BitIds) {
  Text text;
  text.more = R"(, {"id": 9223372036854775807, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1]},
                   {"id": 9223372036854775806, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1]})";
  EXPECT_EQ(text.read()->annotations[1].id, INT64_MAX);
}

TEST(Annotations, ReadPolygonsRunLengthsAndMissingShapes) {
  Text text;
  text.annotation +=
      R"(, "segmentation": [[0, 0, 4, 0, 4, 3, 0, 3], [0.7, 1, 2, 1, 2, 2]], "iscrowd": 0)";
  const auto field =
      R"(, {{"id": {}, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1], "iscrowd": 1, "segmentation": {}}})";
  int id = 100;
  for (const auto* shape : {R"({"size": [5, 6], "counts": [2, 3, 25]})",
                            R"({"counts": "23i0", "size": [5, 6]})", "[]", "null"})
    text.more += fmt::format(fmt::runtime(field), id++, shape);
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

TEST(Annotations, ReadKeypointsAndCountVisible) {
  const auto read = [](const std::string& fields) {
    Text text;
    text.annotation += fields;
    const auto data = text.read();
    const Annotation& one = data->annotations[0];
    const auto keypoints = data->keypoints_of(one);
    return std::pair(one.num_keypoints, std::vector(keypoints.begin(), keypoints.end()));
  };
  const std::vector<double> given = {1, 2.5, 0, 3, 4, 1, 5, 6, 2};
  const std::string field = R"(, "keypoints": [1, 2.5, 0, 3, 4, 1, 5, 6, 2])";
  EXPECT_EQ(read(field), std::pair(2, given));
  EXPECT_EQ(read(field + R"(, "num_keypoints": 7)"), std::pair(7, given));
  EXPECT_EQ(read(R"(, "num_keypoints": null, "keypoints": null)"),
            std::pair(0, std::vector<double>()));
  expect_told(
      {{"[1, 2]", "'keypoints' has 2 numbers"},
       {"7", "'keypoints' is not an array"},
       {"[1, 2, null]", "'keypoints' is not a finite"}},
      [](Text& text, const std::string& part) { text.annotation += R"(, "keypoints": )" + part; });
}

TEST(Annotations, ReadNumbersExactly) {
  std::mt19937_64 random(5);
  const auto digits = [&](std::uint64_t most) {
    std::string text = std::to_string(1 + random() % 9);
    for (auto n = random() % most; n > 0; --n) text += static_cast<char>('0' + random() % 10);
    return text;
  };
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::string> written = {
        "0", "-0", "0.0", "-0.000", "9007199254740993", "0.30000000000000004"};
    while (written.size() < 9) {
      std::string one = below(4) ? digits(12) : digits(21);
      if (below(5) == 0) one = "0";
      if (below(3)) one += "." + std::string(below(4), '0') + digits(below(3) ? 6 : 24);
      if (below(5) == 0) one += std::string(below(2) ? "e" : "E-") + std::to_string(below(40));
      written.push_back((below(3) ? "" : "-") + one);
    }
    Text text;
    text.annotation += fmt::format(R"(, "keypoints": [ {} ])", fmt::join(written, " ,\n"));
    const auto data = text.read();
    const auto read = data->keypoints_of(data->annotations[0]);
    ASSERT_EQ(read.size(), written.size());
    for (std::size_t k = 0; k < read.size(); ++k) {
      const double expected = std::strtod(written[k].c_str(), nullptr);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(read[k]), std::bit_cast<std::uint64_t>(expected))
          << written[k];
    }
  }
  for (const char* wrong :
       {"01", "-",   "+1",       "1.",    ".5",   "1.e3",  "1e",  "1e+", "0x1", "1 2",  "1,",
        ",1", "NaN", "Infinity", "1e400", "true", "\"1\"", "[1]", "1-2", "--1", "1.2.3"})
    for (const char* field : {"keypoints", "bbox"}) {
      Text text;
      text.annotation =
          fmt::format(R"("image_id": 1, "category_id": 7, {}"{}": [0, 1, {}])",
                      field == std::string("bbox") ? "" : R"("bbox": [1, 2, 3, 4], )", field,
                      field == std::string("bbox") ? std::string("2, ") + wrong : wrong);
      EXPECT_NE(text.message(), "") << field << " " << wrong;
    }
}

TEST(Annotations, ReadLvisCategoryLists) {
  Text text;
  text.images = R"([{"id": 2, "coco_url": "http://x.org/val2017/0002.jpg", "width": 4, "height": 3,
                     "not_exhaustive_category_ids": [7], "neg_category_ids": [9, 3]},
                    {"file_name": "a.jpg", "height": 5, "id": 1, "width": 6}])";
  text.categories = R"([{"id": 7, "name": "a", "frequency": "r"}, {"id": 9, "name": "b"}])";
  const auto data = text.read();
  EXPECT_EQ(data->text(data->images[1].file_name), "0002.jpg");
  EXPECT_THAT(data->negative_categories(data->images[1]), ElementsAre(9, 3));
  EXPECT_THAT(data->not_exhaustive_categories(data->images[1]), ElementsAre(7));
  EXPECT_TRUE(data->negative_categories(data->images[0]).empty());
  EXPECT_EQ(data->categories[0].frequency, 'r');
  EXPECT_EQ(data->categories[1].frequency, 0);
}

TEST(Annotations, ReportInvalidJson) {
  const std::string sound = Text{}.json();
  const Fault faults[] = {{"", "x.json: the file is empty"},
                          {" \n", "the file is empty"},
                          {"hello", "x.json: line 1, byte 0: not JSON"},
                          {"[1, 2]", "line 1, byte 0: not JSON"},
                          {"{\"images\": [\xff]}", "line 1, byte 12: not JSON"},
                          {sound + " }", "after the end"},
                          {sound.substr(0, sound.size() / 2), "truncated"},
                          {"{}", "'images' is missing"},
                          {R"({"images": []})", "'annotations' is missing"},
                          {R"({"images": [], "annotations": []})", "'categories' is missing"}};
  for (const auto& [json, told] : faults) EXPECT_THAT(Text::message_of(json), HasSubstr(told));
  for (const std::size_t before : {0, 1, 2, 3, 4, 5, 1 << 20, (1 << 20) + 1, (3 << 20) + 2}) {
    std::string text = "{\"";
    while (text.size() < before) text += "\u20ac";
    EXPECT_THAT(Text::message_of(text + "\xc3(\": 1}"),
                AllOf(HasSubstr(fmt::format("byte {}: ", text.size())), HasSubstr("UTF-8")));
  }
}

TEST(Annotations, ReportLocationOfInvalidFields) {
  expect_told(
      {{R"("image_id": 1, "category_id": 7)", "annotations[0] (id 41): 'bbox' is missing"},
       {R"("image_id": "1")", "x.json: line 1, byte 54: annotations[0] (id 41): 'image_id'"},
       {R"("image_id": 1.5)", "'image_id' is not an integer"},
       {R"("image_id": 9223372036854775808)", "2^63"},
       {R"("iscrowd": "no")", "'iscrowd' is not a"},
       {R"("area": [])", "'area' is not a"}},
      [](Text& text, const std::string& part) { text.annotation = part; });
  expect_told(
      {{R"({"id": 1})", "x.json: line 2, byte 121: 'images'"},
       {"[7]", "images[0] "},
       {R"([{"id": 1, "file_name": 3}])", "images[0] (id 1): 'file_name'"},
       {R"([{"id": 1, "width": 0}])", "'width' is 0"},
       {R"([{"id": 1, "file_name": "a", "width": 6}])", "images[0] (id 1): 'height' is missing"}},
      [](Text& text, const std::string& part) { text.images = part; });
  expect_told({{R"([{"id": 1}])", "categories[0] (id 1): 'name' is missing"}},
              [](Text& text, const std::string& part) { text.categories = part; });
}

TEST(Annotations, ReportInvalidBoxes) {
  expect_told({{"[5, 5, 0, 0]", ""},  // the training pipeline counts and skips it
               {"[0, 0, -1, 5]", "annotations[0] (id 41): 'bbox' has a negative"},
               {"[0, 0, 1]", "'bbox' has 3 numbers, not 4"},
               {"[0, 0, 1, 1, 1]", "'bbox' has 5 numbers, not 4"},
               {"[]", "'bbox' is empty"},
               {"[0, 0, 1, NaN]", "'bbox' is not a finite"},
               {"[0, 0, 1, 1e999]", "'bbox' is not a finite"},
               {"[0, 0, 1, null]", "'bbox' is not a finite"}},
              [](Text& text, const std::string& part) {
                text.annotation = R"("image_id": 1, "category_id": 7, "bbox": )" + part;
              });
}

TEST(Annotations, ReportInvalidShapes) {
  expect_told({{"[[1, 2, 3, 4]]", "(id 41): polygon 0 has 4 numbers"},
               {"[[0,0,1,1,2,2],[1,2,3,4,5,6,7]]", "polygon 1 has 7 numbers"},
               {"[[]]", "polygon 0 has 0 numbers"},
               {"[1,2,3,4,5,6]", "'polygon 0' is not"},
               {"[[1,2,3,4,5,\"6\"]]", "'polygon 0' contains"},
               {"true", "'segmentation' is"},
               {"{}", "'size' is missing"},
               {R"({"size": [5, 6]})", "'counts' is missing"},
               {R"({"size": [5, 6.5], "counts": []})", "'size' is not"},
               {R"({"size": [5, 6], "counts": [29]})", "add up to 5 x 6 pixels"},
               {R"({"size": [5, 6], "counts": [31]})", "add up to 5 x 6 pixels"},
               {R"({"size": [5, 6], "counts": [-1, 31]})", "counts: negative"},
               {R"({"size": [5, 6], "counts": "5"})", "add up to 5 pixels"},
               {R"({"size": [5, 6], "counts": "5 "})", "counts: byte 1: "},
               {R"({"size": [6, 5], "counts": [30]})", "(id 41): the mask is 6 x 5"}},
              [](Text& text, const std::string& part) {
                text.annotation += R"(, "segmentation": )" + part;
              });
}

TEST(Annotations, ReportUnknownAndDuplicateIds) {
  const auto at = R"(line 1, byte 41: annotations[0] (id 41): )";
  expect_told({{R"("image_id": 3, "category_id": 7)", at + "no image has id 3"s},
               {R"("image_id": 1, "category_id": 8)", at + "no category has id 8"s}},
              [](Text& text, const std::string& part) {
                text.annotation = part + R"(, "bbox": [0,0,1,1])";
              });
  expect_told({{R"(, {"id": 41, "image_id": 1, "category_id": 7, "bbox": [0,0,1,1]})",
                "annotations[1] (id 41): annotations[0] "}},
              [](Text& text, const std::string& part) { text.more = part; });
  expect_told(
      {{R"([{"id": 7, "name": "a"}, {"id": 7, "name": "b"}])", "category id 7 occurs twice"}},
      [](Text& text, const std::string& part) { text.categories = part; });
  const std::string image = R"({"id": 1, "file_name": "a", "width": 6, "height": 5})";
  expect_told({{"[" + image + ", " + image + "]", "image id 1 occurs twice"}},
              [](Text& text, const std::string& part) { text.images = part; });
}

TEST(Annotations, ReportMissingFile) { EXPECT_THROW(read_dataset("no/such/file.json"), Error); }

TEST(Annotations, SurviveDamagedJson) {
  Text text;
  text.annotation += R"(, "segmentation": [[0, 0, 4, 0, 4, 3, 0, 3]])";
  text.more =
      R"(, {"id": 5, "image_id": 2, "category_id": 7, "bbox": [0,0,1,1], "segmentation": {"size": [3, 4], "counts": "34"}})";
  const std::string whole = text.json();
  EXPECT_THAT(Text::message_of(whole), HasSubstr("add up to 7"));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    if (i % 4 == 0) damaged.resize(random() % whole.size());
    for (unsigned flips = random() % 4; flips > 0 && !damaged.empty(); --flips)
      damaged[random() % damaged.size()] =
          static_cast<char>(i % 2 ? random() : "{}[]\",:0e-"[random() % 10]);
    Text::message_of(damaged);  // throws nothing but Error
  }
}

TEST(Annotations, ReadCocoSubset) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto set =
      read_dataset(testing::data_folder() / "coco_mini/annotations/instances_train2017.json");
  EXPECT_EQ(set->images.size(), 88U);
  EXPECT_EQ(set->categories.size(), 80U);
  std::size_t polygons = 0;
  for (const auto& one : set->annotations) polygons += one.shape.kind == ShapeKind::polygons;
  EXPECT_GT(polygons, set->annotations.size() * 9 / 10);
}

}  // namespace
}  // namespace millrace::coco
