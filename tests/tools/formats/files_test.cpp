// Parsers and helpers: any input is either read or rejected with a one-sentence error.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "millrace/base/errors.h"
#include "millrace/coco/masks/masks.h"
#include "millrace/tools/formats/files/image_size.h"
#include "millrace/tools/formats/files/png_masks.h"
#include "millrace/tools/formats/files/texts.h"
#include "millrace/tools/formats/files/voc_file.h"
#include "millrace/tools/formats/files/yolo_labels.h"
#include "tests/support/data.h"
#include "tests/support/thrown.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CsvRows, ReadsQuotedFields) {
  const auto rows = csv_rows(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x, \"\"y\"\"\nz\", c \n\n,\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0].fields, ElementsAre("a", "b"));
  EXPECT_THAT(rows[1].fields, ElementsAre("x, \"y\"\nz", "c"));
  EXPECT_EQ(rows[1].line, 2);
  EXPECT_THAT(rows[2].fields, ElementsAre("", ""));
  EXPECT_EQ(rows[2].line, 5);
}

TEST(YoloLabels, ReturnsLabelOrFaultPerLine) {
  const auto file = parse_yolo(
      "0 .5 .5 .2 .1\n\n1 .1 .1 .9 .1 .9 .9\nperson .1 .1 .1 .1\n"
      "2 .1 .1 .1\n2 .1 .1 .1 .1 .9\n0 320 240 10 10\n0 .1 nan .1 .1\n");
  ASSERT_EQ(file.labels.size(), 2u);
  EXPECT_FALSE(file.labels[0].polygon);
  EXPECT_TRUE(file.labels[1].polygon);
  EXPECT_EQ(file.labels[1].line, 3);
  std::vector<std::string> faults;
  for (const auto& [line, why] : file.faults) faults.push_back(fmt::format("{}: {}", line, why));
  EXPECT_THAT(faults,
              ElementsAre(HasSubstr("4: starts with 'person'"), HasSubstr("5: has 3 numbers"),
                          HasSubstr("score"), HasSubstr("7: 320"), HasSubstr("8: 'nan'")));
}

TEST(YoloLabels, IgnoresKeypoints) {
  const auto file = parse_yolo("0 .5 .5 .2 .1 .1 .1 2 .2 .2 2\n", /*keypoint_numbers=*/6);
  ASSERT_EQ(file.labels.size(), 1u);
  EXPECT_TRUE(file.labels[0].has_keypoints);
  EXPECT_EQ(file.labels[0].numbers.size(), 4u);
}

TEST(VocFile, ReportsLineOfInvalidXml) {
  EXPECT_THAT(testing::message_of([] { parse_voc("<annotation>\n<object>\n</annotation>"); }),
              HasSubstr("line 3"));
  EXPECT_THAT(testing::message_of([] { parse_voc("<other/>"); }), HasSubstr("no <annotation>"));
}

TEST(PngValues, ReadsAnyBitDepth) {
  for (const std::uint32_t most : {1u, 200u, 255u, 256u, 65535u}) {
    std::vector<std::uint16_t> values;
    for (std::uint32_t i = 0; i < 15; ++i)
      values.push_back(static_cast<std::uint16_t>(i * most / 14));
    const auto read = parse_png_values(png_of_values(5, 3, values));
    EXPECT_THAT(read.values, ::testing::ElementsAreArray(values));
    EXPECT_FALSE(read.coloured);
  }
}

TEST(PngValues, ReturnsPaletteIndices) {
  const auto read = parse_png_values(png_of_values(3, 1, {0, 2, 1}, {0, 0, 0, 9, 9, 9, 7, 0, 3}));
  EXPECT_THAT(read.values, ElementsAre(0, 2, 1));
}

TEST(PngValues, RejectsTruncatedFile) {
  EXPECT_THROW(parse_png_values("no PNG"), Error);
  const auto whole = png_of_values(2, 1, {0, 254});
  // the last 12 bytes are the IEND chunk
  for (std::size_t length = 0; length < whole.size() - 12; ++length)
    EXPECT_THROW(parse_png_values(std::string_view(whole).substr(0, length)), Error) << length;
}

/// Returns a mask of random blobs with holes.
coco::Rle random_mask(std::mt19937& random, std::uint32_t height, std::uint32_t width) {
  std::vector<std::uint8_t> bitmap(std::size_t{height} * width);
  for (int i = 0; i < 6; ++i) {
    const auto x = random() % width, y = random() % height;
    const auto right = x + random() % 9, below = y + random() % 9;
    const std::uint8_t value = i % 3 == 2 ? 0 : 1;
    for (auto v = y; v < std::min<std::uint64_t>(below, height); ++v)
      for (auto u = x; u < std::min<std::uint64_t>(right, width); ++u)
        bitmap[v * width + u] = value;
  }
  return coco::encode(bitmap.data(), height, width);
}

TEST(ConnectedParts, ReturnsDisjointPartsOfMask) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const auto mask = random_mask(random, 17, 23);
    const auto parts = connected_parts(mask);
    std::uint64_t pixels = 0;
    for (const auto& part : parts) {
      EXPECT_EQ(connected_parts(part).size(), 1u);
      pixels += coco::area(part);
    }
    EXPECT_EQ(pixels, coco::area(mask));
    if (parts.empty()) continue;
    EXPECT_EQ(coco::area(coco::merge(parts)), pixels);
  }
}

TEST(ConnectedParts, JoinsDiagonalNeighbours) {
  const std::uint8_t bitmap[] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1};  // 4 x 4
  EXPECT_EQ(connected_parts(coco::encode(bitmap, 4, 4)).size(), 3u);
}

TEST(ImageSizes, MatchesRealFiles) {
  MILLRACE_NEEDS_DATA("coco_mini");
  coco::Findings findings(1);
  const Listing folder(testing::data_folder() / "coco_mini");
  std::size_t images = 0;
  for (const auto& split : find_format("coco").read(folder, findings))
    for (const auto& image : split.data->images) {
      const auto sizes = sizes_of_image(split.images / split.data->text(image.file_name));
      EXPECT_EQ(sizes.stored, (ImageSize{image.width, image.height}));
      ++images;
    }
  EXPECT_EQ(images, 121u);
}

TEST(ImageSizes, RespectsExifOrientation) {
  MILLRACE_NEEDS_DATA("jpeg");
  std::size_t turned = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::data_folder() / "jpeg")) {
    ImageSizes sizes;
    try {
      sizes = sizes_of_image(entry.path());
    } catch (const Error& problem) {  // a broken file
      EXPECT_THAT(problem.what(), HasSubstr(entry.path().filename().string()));
      continue;
    }
    if (sizes.stored == sizes.upright) continue;
    ++turned;
    EXPECT_EQ(sizes.stored, (ImageSize{sizes.upright.height, sizes.upright.width}));
  }
  EXPECT_GT(turned, 0u);
}

TEST(ImageSizes, ReadsEachFormat) {
  Folder folder;
  folder.image("a.jpg", 31, 17).image("b.png", 31, 17);
  for (const auto* name : {"a.jpg", "b.png"})
    EXPECT_EQ(sizes_of_image(folder.path() / name).upright, (ImageSize{31, 17}));
  const auto webp = [](std::string_view rest) {
    return std::string("RIFF") + std::string(4, '\0') + "WEBP" + std::string(rest);
  };
  using namespace std::string_literals;
  EXPECT_EQ(read_sizes(webp("VP8X\0\0\0\0\0\0\0\0\x1E\0\0\x10\0\0"s))->stored, (ImageSize{31, 17}));
  EXPECT_EQ(read_sizes(webp("VP8 \0\0\0\0\0\0\0\x9D\x01\x2A\x1F\0\x11\0"s))->stored,
            (ImageSize{31, 17}));
  folder.file("c.gif", "GIF89a.....").file("d.jpg", "");
  EXPECT_THAT(testing::message_of([&] { sizes_of_image(folder.path() / "c.gif"); }),
              HasSubstr("is a GIF"));
  EXPECT_THAT(testing::message_of([&] { sizes_of_image(folder.path() / "d.jpg"); }),
              HasSubstr("empty"));
}

TEST(SplitName, RecognizesWordsAndYears) {
  for (const auto& [name, split] : std::map<std::string, std::string>{
           {"Training", "train"}, {"train2017", "train"}, {"valid", "val"}, {"val2014", "val"}})
    EXPECT_EQ(split_name(name), split);
  for (const auto* name : {"", "2017", "train1", "trainval2017", "cats"})
    EXPECT_EQ(split_name(name), std::nullopt) << name;
}

}  // namespace
}  // namespace millrace::formats
