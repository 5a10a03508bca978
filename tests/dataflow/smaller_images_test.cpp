// Images packed at the size that training needs: what changes and what is kept.
#include "millrace/dataflow/store/pack_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "millrace/base/digest.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/store/record_store.h"
#include "millrace/dataflow/store/sample_codec.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

namespace fs = std::filesystem;

constexpr int kSide = 45;  // TinyCoco's images are 30 to 70 pixels wide and high

struct Small {
  TinyCoco files{12};
  DetectionSource source{open_split(files, files.train), /*filter_empty=*/false};
  fs::path folder = fs::path(files.root) / "packed";
  PackReport report;

  explicit Small(const SmallerImages& images, int threads = 1)
      : report(pack_records(source, {"cat", "dog"}, folder, {images, threads})) {}
  std::string file_of(std::int64_t i) const { return read_file(source[i].path); }
};

bool is_small(const Sample& sample) { return std::max(sample.width, sample.height) <= kSide; }

TEST(SmallerImages, LeaveSmallImagesUnchanged) {
  const Small packed({.max_side = kSide});
  const RecordStore store(packed.folder);
  int kept = 0;
  for (std::int64_t i = 0; i < store.size(); ++i) {
    if (!is_small(packed.source.about(i))) continue;
    ++kept;
    EXPECT_EQ(store[i].encoded.bytes, packed.file_of(i));
  }
  EXPECT_GT(kept, 0);
  EXPECT_EQ(packed.report.images, 12);
  EXPECT_EQ(packed.report.smaller, 12 - kept);
  EXPECT_EQ(packed.report.unreadable, 0);
}

TEST(SmallerImages, MatchPlainStoreForLargeSide) {
  const Small plain(SmallerImages{}), large({.max_side = 70});
  EXPECT_EQ(read_file(records_file(large.folder)), read_file(records_file(plain.folder)));
  EXPECT_EQ(large.report.smaller, 0);
}

TEST(SmallerImages, FitMaxSideWithObjects) {
  const Small packed({.max_side = kSide});
  const RecordStore store(packed.folder);
  for (std::int64_t i = 0; i < store.size(); ++i) {
    const auto before = packed.source[i], after = store[i];
    if (is_small(before)) continue;
    SCOPED_TRACE(i);
    EXPECT_EQ(std::max(after.width, after.height), kSide);
    EXPECT_NEAR(after.width * before.height, after.height * before.width,
                0.5 * std::max(before.width, before.height));
    const auto image = Decode{}(after).image.size();
    EXPECT_EQ(image, cv::Size(after.width, after.height));
    const double x = double(after.width) / before.width, y = double(after.height) / before.height;
    ASSERT_EQ(after.objects.size(), before.objects.size());
    EXPECT_EQ(after.objects.classes, before.objects.classes);
    for (std::size_t k = 0; k < before.objects.size(); ++k) {
      EXPECT_NEAR(after.objects.boxes[k].x2, x * before.objects.boxes[k].x2, 1e-4);
      EXPECT_NEAR(after.objects.boxes[k].y2, y * before.objects.boxes[k].y2, 1e-4);
      if (const auto* mask = std::get_if<coco::Rle>(&after.objects.segmentations[k])) {
        EXPECT_EQ(cv::Size(static_cast<int>(mask->width), static_cast<int>(mask->height)), image);
      }
    }
    auto about = store.about(i);
    about.path = after.path;
    auto whole = after;
    whole.encoded = {};
    EXPECT_EQ(encode(about), encode(without_outlines(whole)));
  }
}

TEST(SmallerImages, LookLikeOriginal) {
  const Small packed({.max_side = kSide, .quality = 95});
  const RecordStore store(packed.folder);
  for (std::int64_t i = 0; i < store.size(); ++i) {
    const auto stored = Decode{}(store[i]).image.pixels();
    cv::Mat expected;
    cv::resize(Decode{}(packed.source[i]).image.pixels(), expected, stored.size(), 0, 0,
               cv::INTER_AREA);
    EXPECT_LT(cv::norm(stored, expected, cv::NORM_L1) / (3.0 * stored.total()), 4) << i;
  }
}

TEST(SmallerImages, AreIdenticalForAnyThreadCount) {
  const Small one({.max_side = kSide}, 1), eight({.max_side = kSide}, 8);
  EXPECT_EQ(read_file(records_file(one.folder)), read_file(records_file(eight.folder)));
  EXPECT_EQ(read_file(header_file(one.folder)), read_file(header_file(eight.folder)));
}

TEST(SmallerImages, TakeFewerBytesAtLowerQuality) {
  const Small low({.max_side = kSide, .quality = 30}), high({.max_side = kSide, .quality = 98});
  EXPECT_LT(low.report.bytes_after, high.report.bytes_after);
}

TEST(SmallerImages, ReportAndKeepUndecodableImages) {
  const TinyCoco files(12);
  const DetectionSource source(open_split(files, files.train), false);
  std::int64_t broken = 0;
  while (is_small(source.about(broken))) ++broken;
  const auto file = source.about(broken).path;
  fs::resize_file(file, fs::file_size(file) / 2);
  const auto folder = fs::path(files.root) / "packed";
  const auto report = pack_records(source, {"cat", "dog"}, folder, {{.max_side = kSide}});
  EXPECT_EQ(report.unreadable, 1);
  EXPECT_THAT(report.first_unreadable, HasSubstr(file));
  const RecordStore store(folder);
  EXPECT_EQ(store[broken].encoded.bytes, read_file(file));
  EXPECT_THROW(Decode{}(store[broken]), DataError);
}

}  // namespace
}  // namespace millrace
