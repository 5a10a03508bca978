// Properties of run-length encoded masks.
#include "millrace/coco/masks/masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "millrace/base/errors.h"
#include "tests/coco/random_masks.h"
#include "tests/support/thrown.h"

namespace millrace::coco {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::random_bitmap;

std::vector<std::uint8_t> bitmap_of(const Rle& mask) {
  std::vector<std::uint8_t> bitmap(std::size_t{mask.height} * mask.width, 7);
  decode(mask, bitmap.data());
  return bitmap;
}

struct Case {
  std::vector<std::uint8_t> bitmap;
  std::uint32_t height, width;
};

std::vector<Case> random_cases() {
  std::mt19937 random(1);
  std::vector<Case> cases;
  for (int i = 0; i < 200; ++i) {
    // Widths below, at and above the width of the stripes in which bitmaps are encoded.
    const std::uint32_t height = 1 + random() % 40, width = 1 + random() % (i % 4 ? 40 : 200);
    cases.push_back({random_bitmap(random, height, width), height, width});
  }
  return cases;
}

std::string message_of(std::string_view counts, std::uint32_t height, std::uint32_t width) {
  return millrace::testing::message_of([&] { decode_counts(counts, height, width); });
}

TEST(Masks, EncodeColumnMajorZerosFirst) {
  const std::uint8_t bitmap[] = {0, 1, 1,   //
                                 1, 1, 0};  //
  EXPECT_THAT(encode(bitmap, 2, 3).counts, ElementsAre(1, 4, 1));
  EXPECT_THAT(encode(bitmap + 2, 1, 1).counts, ElementsAre(0, 1))
      << "an empty background run comes first";
}

TEST(Masks, RoundTripThroughEncoding) {
  for (const auto& c : random_cases()) {
    const Rle mask = encode(c.bitmap.data(), c.height, c.width);
    EXPECT_EQ(bitmap_of(mask), c.bitmap);
    EXPECT_EQ(decode_counts(encode_counts(mask), c.height, c.width), mask);
    EXPECT_EQ(area(mask), std::accumulate(c.bitmap.begin(), c.bitmap.end(), std::uint64_t{0}));
  }
}

TEST(Masks, EncodeLargestRuns) {
  for (const Rle& mask :
       {Rle{65535, 65537, {4294967294U, 1}}, Rle{65535, 65537, {1, 4294967290U, 1, 1, 2}}})
    EXPECT_EQ(decode_counts(encode_counts(mask), mask.height, mask.width), mask);
}

TEST(Masks, BoundingBoxMatchesCoco) {
  std::vector<std::uint8_t> bitmap(10 * 20, 0);
  for (int y = 3; y < 6; ++y)
    for (int x = 7; x < 12; ++x) bitmap[y * 20 + x] = 1;
  EXPECT_EQ(bounding_box(encode(bitmap.data(), 10, 20)), (Box{7, 3, 12, 6}));
  EXPECT_EQ(bounding_box(Rle{4, 5, {6, 4, 10}}), (Box{1, 0, 3, 4}))
      << "a run that continues in the next column spans the full height";
  for (const Rle& nothing : {Rle{4, 5, {20}}, Rle{4, 5, {3, 0, 17}}, Rle{}})
    EXPECT_EQ(bounding_box(nothing), Box{});
}

TEST(Masks, DifferenceMatchesBitmaps) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t height = 1 + random() % 20, width = 1 + random() % 20;
    auto left = random_bitmap(random, height, width);
    const auto right = random_bitmap(random, height, width);
    const Rle result =
        difference(encode(left.data(), height, width), encode(right.data(), height, width));
    for (std::size_t k = 0; k < left.size(); ++k) left[k] = left[k] && !right[k];
    ASSERT_EQ(result, encode(left.data(), height, width));
  }
}

TEST(Masks, WindowMatchesBitmap) {
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    const int height = 1 + random() % 20, width = 1 + random() % 20;
    const auto before = random_bitmap(random, height, width);
    const int rows = 1 + random() % 30, columns = 1 + random() % 30;
    const int x = static_cast<int>(random() % 60) - 30, y = static_cast<int>(random() % 60) - 30;
    std::vector<std::uint8_t> after(static_cast<std::size_t>(rows) * columns, 0);
    for (int r = std::max(0, -y); r < rows && r + y < height; ++r)
      for (int c = std::max(0, -x); c < columns && c + x < width; ++c)
        after[r * columns + c] = before[(r + y) * width + c + x];
    ASSERT_EQ(window(encode(before.data(), height, width), x, y, rows, columns),
              encode(after.data(), rows, columns));
  }
}

TEST(Masks, UnionAndIntersectionMatchBitmaps) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint8_t> any(12 * 17, 0), all(12 * 17, 1);
    std::vector<Rle> masks;
    for (unsigned k = 0; k < 1 + random() % 4; ++k) {
      const auto one = random_bitmap(random, 12, 17);
      for (std::size_t p = 0; p < all.size(); ++p) any[p] |= one[p], all[p] &= one[p];
      masks.push_back(encode(one.data(), 12, 17));
    }
    EXPECT_EQ(merge(masks), encode(any.data(), 12, 17));
    EXPECT_EQ(intersect(masks), encode(all.data(), 12, 17));
  }
}

TEST(Masks, RejectDifferentSizes) {
  const Rle masks[] = {{2, 3, {6}}, {3, 2, {6}}};
  EXPECT_THROW(merge(masks), Error);
  EXPECT_THROW(intersect(masks), Error);
  EXPECT_THROW(difference(masks[0], masks[1]), Error);
}

TEST(Masks, AcceptEmptySizes) {
  for (const Rle& mask : {Rle{0, 0, {0}}, Rle{0, 5, {0}}, Rle{5, 0, {0}}}) {
    EXPECT_EQ(encode(nullptr, mask.height, mask.width), mask);
    decode(mask, nullptr);
    EXPECT_EQ(area(mask), 0U);
    EXPECT_EQ(bounding_box(mask), Box{});
    EXPECT_EQ(decode_counts(encode_counts(mask), mask.height, mask.width), mask);
  }
  // Counts for sizes without pixels.
  for (const auto& [height, width] : {std::pair{0U, 5U}, {5U, 0U}, {0U, 0U}}) {
    const Rle none = decode_counts("000", height, width);
    EXPECT_EQ(none.counts, (std::vector<std::uint32_t>{0, 0, 0}));
    EXPECT_EQ(area(none), 0U);
    EXPECT_EQ(bounding_box(none).x2, 0);
  }
}

TEST(Masks, TreatNonZeroBytesAsForeground) {
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  EXPECT_THAT(encode(bytes.data(), 1, 256).counts, ElementsAre(1, 255));
  EXPECT_THAT(encode(bytes.data(), 256, 1).counts, ElementsAre(1, 255));
}

TEST(Masks, IouMatchesBitmaps) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto a = random_bitmap(random, 15, 11), b = random_bitmap(random, 15, 11);
    double shared = 0, all = 0, first = 0;
    for (std::size_t p = 0; p < a.size(); ++p) {
      shared += a[p] && b[p];
      all += a[p] || b[p];
      first += a[p];
    }
    const Rle d[] = {encode(a.data(), 15, 11)};
    const Rle g[] = {encode(b.data(), 15, 11), encode(b.data(), 15, 11)};
    const std::uint8_t crowd[] = {0, 1};
    const auto ious = mask_iou(d, g, crowd);
    EXPECT_EQ(ious[0], shared == 0 ? 0 : shared / all);
    EXPECT_EQ(ious[1], shared == 0 ? 0 : shared / first);
  }
}

TEST(Masks, IouOfDifferentSizesMatchesPycocotools) {
  const Rle d[] = {{4, 4, {0, 16}}};
  const Rle g[] = {{4, 5, {0, 20}}, {4, 9, {32, 4}}};
  const std::uint8_t crowd[] = {0, 0};
  EXPECT_THAT(mask_iou(d, g, crowd), ElementsAre(-1, 0));
}

TEST(Masks, ReportByteOfInvalidCounts) {
  const std::pair<std::string_view, std::string> faults[] = {{"0 1", "byte 1: invalid character"},
                                                             {"1\xff", "byte 1: invalid character"},
                                                             {"1Q", "byte 2: the text ends"},
                                                             {"oooooooooo", "byte 7: a number"},
                                                             {"O", "byte 0: negative"},
                                                             {"13", "byte 1: the runs exceed"},
                                                             {"1", "add up to 1 pixels"},
                                                             {"", "add up to 0 pixels"}};
  for (const auto& [counts, told] : faults)
    EXPECT_THAT(message_of(counts, 1, 2), HasSubstr(told)) << counts;
  EXPECT_THAT(message_of("0", 70000, 70000), HasSubstr("70000 x 70000"));
}

TEST(Masks, SurviveDamagedCounts) {
  std::mt19937 random(4);
  for (const auto& c : random_cases()) {
    const std::string whole = encode_counts(encode(c.bitmap.data(), c.height, c.width));
    for (int i = 0; i < 50; ++i) {
      std::string damaged = whole.substr(0, random() % (whole.size() + 1));
      if (!damaged.empty()) damaged[random() % damaged.size()] = static_cast<char>(random());
      testing::message_of([&] { bitmap_of(decode_counts(damaged, c.height, c.width)); });
    }
  }
}

}  // namespace
}  // namespace millrace::coco
