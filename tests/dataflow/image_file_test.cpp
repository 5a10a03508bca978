// Unusual and broken files are decoded correctly or rejected with a DataError; they never cause a
// crash or an image of the wrong size.
#include "millrace/dataflow/image/image_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/image/image_head.h"
#include "tests/dataflow/flows.h"
#include "tests/support/data.h"
#include "tests/support/pictures.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

std::string jpeg(int width, int height) {
  return encoded(".jpg", cv::Mat(height, width, CV_8UC3, cv::Scalar(10, 100, 200)));  // BGR
}

std::string png(const cv::Mat& image) { return encoded(".png", image); }

/// Inserts an EXIF segment after the first two bytes of a JPEG.
std::string with_orientation(std::string bytes, int orientation, bool big_endian) {
  std::string tiff = big_endian
                         ? std::string("MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19)
                         : std::string("II\x2A\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18);
  tiff += static_cast<char>(orientation);
  tiff.resize(26);
  const std::string content = std::string("Exif\0\0", 6) + tiff;
  const auto length = content.size() + 2;
  const std::string head{'\xFF', '\xE1', static_cast<char>(length >> 8), static_cast<char>(length)};
  return bytes.insert(2, head + content);
}

TEST(DecodeRgb, ReturnsRedFirst) {
  const auto image = decode_rgb(jpeg(20, 10), "x.jpg");
  ASSERT_EQ(image.size(), cv::Size(20, 10));
  const auto pixel = image.at<cv::Vec3b>(5, 10);
  EXPECT_NEAR(pixel[0], 200, 3);
  EXPECT_NEAR(pixel[2], 10, 3);
}

TEST(DecodeRgb, RotatesOnlyIfAnnotationIsUpright) {
  for (const bool big_endian : {false, true}) {
    const auto bytes = with_orientation(jpeg(20, 10), 6, big_endian);
    EXPECT_EQ(decode_rgb(bytes, "x", cv::Size(20, 10)).size(), cv::Size(20, 10));
    EXPECT_EQ(decode_rgb(bytes, "x", cv::Size(10, 20)).size(), cv::Size(10, 20));
    EXPECT_EQ(decode_rgb(bytes, "x").size(), cv::Size(10, 20));
  }
}

TEST(DecodeRgb, RejectsTruncatedJpeg) {
  const auto good = jpeg(64, 48);
  for (std::size_t i = 0; i < good.size(); i += 7) {
    EXPECT_THROW(decode_rgb(good.substr(0, i), "x"), DataError) << i;
    EXPECT_EQ(decode_rgb(good, "x").size(), cv::Size(64, 48)) << i;
  }
}

TEST(DecodeRgb, AcceptsDamagedJpegIfNotStrict) {
  const auto bytes = jpeg(64, 48);
  EXPECT_EQ(decode_rgb(bytes.substr(0, bytes.size() - 20), "x", {}, /*strict=*/false).size(),
            cv::Size(64, 48));
}

TEST(DecodeRgb, SurvivesFlippedBytes) {
  const auto good = with_orientation(jpeg(64, 48), 6, true);
  Rng rng{9};
  for (int round = 0; round < 500; ++round) {
    auto bytes = good;
    for (auto flips = 1 + rng.below(5); flips > 0; --flips)
      bytes[rng.below(bytes.size())] = static_cast<char>(rng.below(256));
    try {
      const auto image = decode_rgb(bytes, "x", cv::Size(64, 48));
      ASSERT_EQ(image.size(), cv::Size(64, 48));
    } catch (const DataError&) {
    }
  }
}

TEST(DecodeRgb, DecodesReducedSizes) {
  const auto size = [](cv::Size whole, cv::Size enough) {
    return decode_rgb(jpeg(whole.width, whole.height), "x", whole, true, enough).size();
  };
  const cv::Size whole(64, 40);
  EXPECT_EQ(size(whole, {}), whole);
  EXPECT_EQ(size(whole, {33, 20}), whole);
  EXPECT_EQ(size(whole, {32, 20}), cv::Size(32, 20));
  EXPECT_EQ(size(whole, {16, 10}), cv::Size(16, 10));
  EXPECT_EQ(size(whole, {1, 1}), cv::Size(8, 5));
  EXPECT_EQ(size({64, 42}, {1, 1}), cv::Size(32, 21));
  EXPECT_EQ(size({64, 41}, {1, 1}), cv::Size(64, 41)) << "41 rows cannot be halved";
  const auto turned = with_orientation(jpeg(64, 40), 6, true);
  EXPECT_EQ(decode_rgb(turned, "x", cv::Size(40, 64), true, {20, 30}).size(), cv::Size(20, 32));
  EXPECT_EQ(decode_rgb(turned, "x", cv::Size(40, 64), true, {21, 30}).size(), cv::Size(40, 64));
}

TEST(DecodeRgb, MatchesResizedImageAtReducedSize) {
  MILLRACE_NEEDS_DATA("coco_mini");
  int photos = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(data_folder() / "coco_mini" / "val2017")) {
    const auto bytes = read_file(entry.path());
    const auto whole = decode_rgb(bytes, entry.path().string());
    for (const int divisor : {2, 4, 8}) {
      const auto part = whole.size() / divisor;
      if (part * divisor != whole.size()) continue;
      const auto reduced = decode_rgb(bytes, entry.path().string(), {}, true, part);
      ASSERT_EQ(reduced.size(), part);
      cv::Mat expected;
      cv::resize(whole, expected, part, 0, 0, cv::INTER_AREA);
      const double difference =
          cv::norm(reduced, expected, cv::NORM_L1) / static_cast<double>(3 * part.area());
      EXPECT_LT(difference, 2) << entry.path() << " / " << divisor;
      ++photos;
    }
  }
  EXPECT_GE(photos, 20);
}

TEST(Exif, DefaultsToOne) {
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation("\xFF\xD8\xFF"), 1);
  EXPECT_EQ(exif_orientation(jpeg(8, 8)), 1);
  EXPECT_EQ(exif_orientation(with_orientation(jpeg(8, 8), 9, true)), 1);
}

TEST(Exif, MatchesOpenCvRotation) {
  cv::Mat image(2, 3, CV_8UC1);
  for (int i = 0; i < 6; ++i) image.data[i] = static_cast<std::uint8_t>(i);
  const int corners[] = {0, 2, 5, 3, 0, 3, 5, 2};
  for (int orientation = 1; orientation <= 8; ++orientation)
    EXPECT_EQ(upright(image, orientation).data[0], corners[orientation - 1]) << orientation;
  EXPECT_EQ(upright(image, 5).size(), cv::Size(2, 3));
}

std::filesystem::path pictures_of_every_kind() { return "tests/dataflow/pictures"; }

/// Calls `check` with each image's name, its bytes, and the rest of its line in digests.txt.
template <class Check>
void for_each_picture(const Check& check) {
  std::istringstream digests(read_file(pictures_of_every_kind() / "digests.txt"));
  int count = 0;
  for (std::string name, rest; digests >> name && std::getline(digests, rest); ++count) {
    SCOPED_TRACE(name);
    check(name, read_file(pictures_of_every_kind() / name), rest.substr(1));
  }
  EXPECT_GE(count, 100);
}

std::string digest_of(const cv::Mat& image) {
  return fmt::format("{} {} {}", image.cols, image.rows,
                     hex(digest(image.data, image.total() * image.elemSize())));
}

// PNG, WebP and TIFF files of all kinds; pictures/make.py lists them.
TEST(DecodeRgb, MatchesRecordedOpenCvPixels) {
  for_each_picture([](const auto& name, const auto& bytes, const auto& expected) {
    if (expected == "none")
      EXPECT_THROW(decode_rgb(bytes, name), DataError);
    else
      EXPECT_EQ(digest_of(decode_rgb(bytes, name)), expected);
  });
}

TEST(DecodeRgb, ReturnsSamePixelsInAllThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&wrong] {
      for (int round = 0; round < 3; ++round)
        for_each_picture([&](const auto& name, const auto& bytes, const auto& expected) {
          if (expected != "none" && digest_of(decode_rgb(bytes, name)) != expected) ++wrong;
        });
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(DecodeRgb, RejectsOrDecodesDamagedImages) {
  Rng rng{11};
  for_each_picture([&](const auto& name, const auto& sound, const auto&) {
    for (int round = 0; round < 20; ++round) {
      auto bytes = sound;
      if (round % 3 == 0) bytes.resize(rng.below(bytes.size()));
      // Headers are damaged more often than pixels.
      const auto within = std::min<std::size_t>(bytes.size(), round % 2 == 0 ? 80 : 10'000);
      for (auto flips = rng.below(5); flips > 0 && within > 0; --flips)
        bytes[rng.below(within)] = static_cast<char>(rng.below(256));
      try {
        const auto image = decode_rgb(bytes, name);
        EXPECT_GT(image.total(), 0U);
        EXPECT_EQ(image.type(), CV_8UC3);
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), StartsWith(name + ": "));
      }
    }
  });
}

TEST(DecodeRgb, RejectsTruncatedImages) {
  for (const std::string name : {
           "png/other/rgb_8.png",
           "png/other/rgba_16_interlaced.png",
           "webp/other/lossy.webp",
           "webp/other/lossless_alpha.webp",
           "tif/other/rgb_lzw.tif",
       }) {
    const auto whole = read_file(pictures_of_every_kind() / name);
    for (const auto part : {1, 3, 5, 7, 9})
      EXPECT_THAT(
          [&] {
            decode_rgb(whole.substr(0, whole.size() * static_cast<std::size_t>(part) / 10), name);
          },
          ThrowsMessage<DataError>(StartsWith(name + ": ")))
          << part << " tenths of the file";
  }
}

TEST(DecodeRgb, ReportsUnsupportedFormats) {
  const auto head = [](std::string start) { return start + std::string(40, '\0'); };
  const std::pair<std::string, std::string> cases[] = {
      {head("GIF89a"), "a GIF"},
      {head("BM"), "a BMP"},
      {head("P6\n8 8\n255\n"), "a PNM (PBM, PGM, PPM, PAM or PFM)"},
      {head(std::string("\0\0\0\x0CjP  ", 8)), "a JPEG 2000"},
      {head(std::string("\0\0\0\x1C", 4) + "ftypavif"), "an AVIF"},
      {head("#?RADIANCE\n"), "a Radiance HDR"},
      {head("\x76\x2F\x31\x01"), "an OpenEXR"}};
  for (const auto& [bytes, format] : cases)
    EXPECT_THAT(message_of<DataError>([&] { decode_rgb(bytes, "x"); }),
                StartsWith("x: is " + format + ","));
  EXPECT_THAT(message_of<DataError>([] { decode_rgb("P6, the party's sixth", "x"); }),
              AllOf(StartsWith("x: "), HasSubstr("format")));
}

TEST(DecodeRgb, DecodesPaletteWithTransparency) {
  // Two pixels, (10, 100, 200) and (250, 0, 30); the first is transparent.
  constexpr unsigned char kBytes[] = {
      0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44,
      0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x01, 0x03, 0x00, 0x00, 0x00, 0xCE,
      0xEC, 0xED, 0xC9, 0x00, 0x00, 0x00, 0x06, 0x50, 0x4C, 0x54, 0x45, 0x0A, 0x64, 0xC8, 0xFA,
      0x00, 0x1E, 0x99, 0xEB, 0x46, 0xA8, 0x00, 0x00, 0x00, 0x02, 0x74, 0x52, 0x4E, 0x53, 0x00,
      0xFF, 0x5B, 0x91, 0x22, 0xB5, 0x00, 0x00, 0x00, 0x0A, 0x49, 0x44, 0x41, 0x54, 0x78, 0xDA,
      0x63, 0x70, 0x00, 0x00, 0x00, 0x42, 0x00, 0x41, 0x84, 0xBF, 0x8E, 0x62, 0x00, 0x00, 0x00,
      0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
  const auto image = decode_rgb({reinterpret_cast<const char*>(kBytes), sizeof kBytes}, "x.png");
  ASSERT_EQ(image.size(), cv::Size(2, 1));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 0), cv::Vec3b(10, 100, 200));
  EXPECT_EQ(image.at<cv::Vec3b>(0, 1), cv::Vec3b(250, 0, 30));
}

TEST(DecodeRgb, RejectsSizesTooLargeForFile) {
  auto bytes = jpeg(64, 48);
  const auto head = bytes.find("\xFF\xC0");  // FF C0, length, precision, height, width
  ASSERT_NE(head, std::string::npos);
  bytes.replace(head + 5, 4, "\xEA\x60\xEA\x60");
  for (const bool strict : {true, false})
    EXPECT_THAT([&] { decode_rgb(bytes, "x.jpg", {}, strict); },
                ThrowsMessage<DataError>(HasSubstr("x.jpg: declares 60000 x 60000")));
}

/// Inserts stray bytes into a JPEG before the marker FF `code`.
std::string with_strays(std::string bytes, char code) {
  return bytes.insert(bytes.find(std::string{'\xFF', code}), std::string("\1\2\3\4\5"));
}

TEST(DecodeRgb, AcceptsHarmlessStrayBytes) {
  const auto sound = jpeg(64, 48);
  const auto expected = decode_rgb(sound, "x");
  for (const char code : {'\xDB', '\xC4', '\xDA', '\xD9'}) {  // tables, scan, end of image
    const auto odd = with_strays(sound, code);
    EXPECT_EQ(cv::norm(decode_rgb(odd, "x", cv::Size(64, 48)), expected, cv::NORM_INF), 0);
    EXPECT_EQ(check_head(odd, "x", cv::Size(64, 48)), 1);
    for (const auto part : {2, 5}) {
      const auto cut = odd.substr(0, odd.size() * static_cast<std::size_t>(part) / 6);
      EXPECT_THROW(decode_rgb(cut, "x"), DataError) << "truncation must still be detected";
    }
  }
}

/// Encodes `value` in `count` bytes.
std::string packed(std::uint64_t value, int count, bool big_endian) {
  std::string bytes;
  for (int i = 0; i < count; ++i)
    bytes += static_cast<char>(value >> 8 * (big_endian ? count - 1 - i : i));
  return bytes;
}

/// Returns small PNG and TIFF files whose headers declare this size.
std::vector<std::pair<std::string, std::string>> said_to_be(std::uint32_t width,
                                                            std::uint32_t height) {
  const cv::Mat image(8, 8, CV_8UC3, cv::Scalar(1, 2, 3));
  auto as_png = png(image);
  as_png.replace(16, 8, packed(width, 4, true) + packed(height, 4, true));
  const auto entry = [](int tag, std::uint32_t value) {
    return packed(static_cast<std::uint64_t>(tag), 2, false) + packed(4, 2, false) +
           packed(1, 4, false) + packed(value, 4, false);
  };
  const auto as_tiff = std::string("II*\0\x08\0\0\0\x02\0", 10) + entry(256, width) +
                       entry(257, height) + std::string(4, '\0');
  return {{"x.png", as_png}, {"x.tif", as_tiff}};
}

TEST(DecodeRgb, RejectsHugeDeclaredSizes) {
  const auto message = [](const std::string& bytes, const std::string& file) {
    return message_of<DataError>([&] { decode_rgb(bytes, file); });
  };
  for (const auto& [file, bytes] : said_to_be(100'000, 90'000))
    EXPECT_THAT(message(bytes, file), AllOf(StartsWith(file + ": "), HasSubstr("100000 x 90000"),
                                            HasSubstr("1048576"), HasSubstr("1073741824")));
  for (const auto& [file, bytes] : said_to_be(2'000'000, 8))
    EXPECT_THAT(message(bytes, file), HasSubstr("2000000 x 8 pixels, but the maximum"));
  auto files = said_to_be(30'000, 30'000);
  files.pop_back();  // a TIFF file can contain that many pixels
  for (const auto& [file, bytes] : files)
    EXPECT_THAT(message(bytes, file), AllOf(StartsWith(file + ": "), HasSubstr("30000 x 30000"),
                                            HasSubstr(std::to_string(bytes.size()) + " bytes")));
  for (const auto& [file, bytes] : said_to_be(0, 8))
    EXPECT_THAT(message(bytes, file), StartsWith(file + ": "));
}

TEST(DecodeRgb, RejectsImagesAboveMaxPixels) {
  const auto expect_limit = [](const std::string& bytes, const std::string& name) {
    const auto pixels = static_cast<std::int64_t>(decode_rgb(bytes, name).total());
    for (const std::int64_t enough : {pixels, std::int64_t{0}})
      EXPECT_EQ(decode_rgb(bytes, name, {}, true, {}, enough).total(),
                static_cast<std::size_t>(pixels));
    if (pixels == 1) return;
    const auto message =
        message_of<DataError>([&] { decode_rgb(bytes, name, {}, true, {}, pixels - 1); });
    EXPECT_THAT(message, AllOf(StartsWith(name + ": "),
                               HasSubstr("data.max_pixels = " + std::to_string(pixels - 1))));
  };
  for_each_picture([&](const auto& name, const auto& bytes, const auto& expected) {
    if (expected != "none") expect_limit(bytes, name);
  });
  expect_limit(jpeg(20, 10), "x.jpg");
  EXPECT_THAT(
      [] {
        decode_rgb(jpeg(64, 64), "x", {}, true, /*enough=*/{8, 8}, 1000);
      },
      ThrowsMessage<DataError>(HasSubstr("64 x 64")))
      << "the size in the file counts, not the reduced size";
}

TEST(DecodeRgb, RejectsDecompressionBombs) {
  auto bomb = png(cv::Mat(8, 8, CV_8UC1, cv::Scalar(1)));
  bomb.replace(16, 8, packed(32'000, 4, true) + packed(32'000, 4, true));
  bomb.resize(130'000);  // a file of this length can contain that many pixels
  EXPECT_THAT([&] { decode_rgb(bomb, "x.png"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("x.png: is 32000 x 32000"),
                                             HasSubstr("data.max_pixels = 178956970"))));
}

TEST(DecodeRgb, RejectsOversizedTiles) {
  const auto entry = [](int tag, int type, std::uint32_t value) {
    return packed(static_cast<std::uint64_t>(tag), 2, false) +
           packed(static_cast<std::uint64_t>(type), 2, false) + packed(1, 4, false) +
           packed(value, 4, false);
  };
  const auto tiled = [&](std::uint32_t side, std::uint32_t channels) {
    return std::string("II*\0\x08\0\0\0\x0A\0", 10) + entry(256, 4, 8) + entry(257, 4, 8) +
           entry(258, 3, 8) + entry(259, 3, 8) + entry(262, 3, channels == 1 ? 1 : 2) +
           entry(277, 3, channels) + entry(322, 4, side) + entry(323, 4, side) +
           entry(324, 4, 200) + entry(325, 4, 20) + std::string(100, '\0');
  };
  EXPECT_THAT([&] { decode_rgb(tiled(16'384, 1), "x.tif"); },
              ThrowsMessage<DataError>(AllOf(HasSubstr("x.tif: "), HasSubstr("too large"))));
  EXPECT_THROW(decode_rgb(tiled(2048, 200), "x.tif"), DataError);
}

TEST(DecodeRgb, RejectsWrongSizeBeforeDecoding) {
  EXPECT_THAT([] { decode_rgb(jpeg(20, 10), "x.jpg", cv::Size(10, 20)); },
              ThrowsMessage<DataError>(
                  AllOf(HasSubstr("x.jpg: is 20 x 10"), HasSubstr("annotated as 10 x 20"))));
  const auto bytes = png(cv::Mat(300, 400, CV_8UC1, cv::Scalar(7)));
  EXPECT_THAT([&] { decode_rgb(bytes.substr(0, 60), "x.png", cv::Size(300, 400)); },
              ThrowsMessage<WrongSize>(
                  AllOf(HasSubstr("x.png: is 400 x 300"), HasSubstr("annotated as 300 x 400"))))
      << "the file ends before its pixels";
}

/// Decodes with 100 MiB of memory left, then exits: with code 0 and the message on stderr if
/// decoding throws a DataError, otherwise with code 1.
[[noreturn]] void decode_with_little_memory(const std::string& bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto most = pages * 4096 + (std::size_t{100} << 20);
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  try {
    decode_rgb(bytes, "x.png");
  } catch (const DataError& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(0);
  }
  std::_Exit(1);
}

TEST(DecodeRgb, ReportsLackOfMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need an unlimited address space";
  const cv::Mat image(7000, 7000, CV_8UC1, cv::Scalar(7));
  decode_rgb(png(image(cv::Rect(0, 0, 9, 9))), "x.png");  // loads the image readers
  for (const auto& bytes : {png(image), encoded(".jpg", image)})
    EXPECT_EXIT(decode_with_little_memory(bytes), ExitedWithCode(0), "x.png: .*memory");
}

TEST(DecodeRgb, DecodesCmykJpegs) {
  MILLRACE_NEEDS_DATA("jpeg");
  const std::pair<std::string, std::string> cases[] = {
      {"coco1_cmyk", "640 427 ec75ce131b8883fb"},
      {"jpeg-decoder__jpg-cmyk-1", "32 32 be8f420bd45b9752"},
      {"Pillow__pil_sample_cmyk", "100 100 c7340bf4803db8d2"}};
  for (const auto& [name, expected] : cases) {
    const auto bytes = read_file(data_folder() / "jpeg" / (name + ".jpg"));
    const auto image = decode_rgb(bytes, name);
    EXPECT_EQ(digest_of(image), expected);
    for (const auto part : {1, 2, 4, 5, 8, 9}) {
      const auto cut = bytes.substr(0, bytes.size() * static_cast<std::size_t>(part) / 10);
      EXPECT_THROW(decode_rgb(cut, name, image.size()), DataError) << part << " tenths of the file";
    }
  }
}

void expect_mean(const cv::Mat& image, const nlohmann::json& mean, double tolerance) {
  const auto own = cv::mean(image);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(own[c], mean[c], tolerance);
}

TEST(DecodeRgb, MatchesPillowAndOpenCv) {
  MILLRACE_NEEDS_DATA("jpeg");
  const auto folder = data_folder() / "jpeg";
  const auto manifest = nlohmann::json::parse(read_file(folder / "manifest.json"));
  int decoded = 0, damaged = 0;
  for (const auto& entry : manifest["files"]) {
    const std::string file = entry["file"];
    SCOPED_TRACE(file);
    const auto bytes = read_file(folder / file);
    const auto& pillow = entry["pillow_truncated_ok"];
    for (const bool strict : {true, false}) {
      std::optional<cv::Mat> image;
      try {
        image = decode_rgb(bytes, file, {}, strict);
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr(file));
        EXPECT_FALSE(entry[strict ? "pillow_strict" : "pillow_truncated_ok"]["ok"]) << error.what();
        continue;
      }
      EXPECT_TRUE(entry[strict ? "pillow_strict" : "pillow_truncated_ok"]["ok"]);
      EXPECT_NE(entry["class"], "rejected");
      ++(strict ? decoded : damaged);
      ASSERT_TRUE(pillow["ok"]);
      const int turn = exif_orientation(bytes);
      EXPECT_EQ(turn, pillow["exif_orientation"].is_number() ? int(pillow["exif_orientation"]) : 1);
      const cv::Size size(pillow["size"][0], pillow["size"][1]);
      EXPECT_EQ(image->size(), turn >= 5 ? cv::Size(size.height, size.width) : size);
      EXPECT_EQ(decode_rgb(bytes, file, size, strict).size(), size);
      // OpenCV and Pillow round CMYK differently.
      expect_mean(*image, pillow["rgb_mean"], pillow["mode"] == "CMYK" ? 1.1 : 0.05);
      expect_mean(*image, entry["cv2_color"]["rgb_mean"], 0.05);
    }
  }
  EXPECT_GE(decoded, 30);
  EXPECT_EQ(damaged, decoded + 3) << "truncated files";
}

}  // namespace
}  // namespace millrace
