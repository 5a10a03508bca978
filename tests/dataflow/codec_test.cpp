// The encodings of samples (bytes) and batches (a header and frames) round-trip, and invalid bytes
// are rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <opencv2/core.hpp>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "millrace/dataflow/store/batch_codec.h"
#include "millrace/dataflow/store/sample_codec.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

/// Expects `decode` to throw DataError for random bytes.
template <class Decode>
void refuse_noise(Decode decode) {
  Rng rng{2};
  for (int round = 0; round < 20'000; ++round) {
    std::string noise(rng.below(200), '\0');
    for (auto& byte : noise) byte = static_cast<char>(rng.below(256));
    ASSERT_THROW(decode(noise), DataError);
  }
}

/// Returns a sample in which every member is set.
Sample full_sample() {
  Sample sample;
  sample.image_id = -5'000'000'000;
  sample.path = "Füße/bild 1.jpg";
  sample.width = 7, sample.height = 4;
  sample.scale_x = 0.5F, sample.scale_y = 0.75F;
  cv::Mat pixels(3, 4, CV_8UC3);
  for (int i = 0; i < 36; ++i) pixels.data[i] = static_cast<std::uint8_t>(7 * i);
  sample.image = {pixels, {9, 5}};
  sample.image.mirror();
  sample.objects = {{{0, 0, 3, 2}, {0.1F, 1, 4, 3}, {1, 1, 1, 2}},
                    {3, 0, 79},
                    {0, 0, 1},
                    {std::vector<coco::Polygon>{{0.1, 0, 3.3, 0, 3, 2}, {1, 1, 2, 1, 2, 2, 1, 2}},
                     coco::Segmentation{}, coco::Rle{3, 4, {1, 5, 6}}}};
  const auto file = std::make_shared<const std::string>("\xFF\xD8 a file\0 with a zero", 21);
  sample.encoded = {file, *file, digest(file->data(), file->size())};
  return sample;
}

TEST(SampleCodec, RoundTrips) {
  const auto before = full_sample();
  const auto after = decode_sample(encode(before), "here");
  EXPECT_EQ(after.image_id, before.image_id);
  EXPECT_EQ(after.path, before.path);
  EXPECT_EQ(after.width, 7);
  EXPECT_EQ(after.height, 4);
  EXPECT_EQ(after.scale_x, 0.5F);
  EXPECT_EQ(after.scale_y, 0.75F);
  EXPECT_EQ(after.objects.boxes, before.objects.boxes);
  EXPECT_EQ(after.objects.classes, before.objects.classes);
  EXPECT_EQ(after.objects.crowd, before.objects.crowd);
  EXPECT_EQ(after.objects.segmentations, before.objects.segmentations);
  EXPECT_EQ(cv::norm(after.image.stored_pixels(), before.image.stored_pixels(), cv::NORM_INF), 0);
  EXPECT_EQ(after.image.size(), cv::Size(9, 5));
  EXPECT_TRUE(after.image.is_mirrored());
  EXPECT_EQ(cv::norm(after.image.pixels(), before.image.pixels(), cv::NORM_INF), 0);
  EXPECT_EQ(after.encoded.bytes, before.encoded.bytes);
  EXPECT_EQ(after.encoded.digest, before.encoded.digest);

  const auto bare = decode_sample(encode(Sample{}), "here");
  EXPECT_TRUE(bare.image.empty());
  EXPECT_FALSE(bare.encoded.owner);
  EXPECT_EQ(bare.objects.size(), 0U);
}

TEST(SampleCodec, KeepsPendingResize) {
  auto before = full_sample();
  EXPECT_EQ(decode_sample(encode(before), "here").image.resampling(), Resampling::opencv);
  before.image.resize({2, 2}, Resampling::pillow);
  const auto after = decode_sample(encode(before), "here");
  EXPECT_EQ(after.image.resampling(), Resampling::pillow);
  EXPECT_EQ(cv::norm(after.image.pixels(), before.image.pixels(), cv::NORM_INF), 0);
}

TEST(SampleCodec, WritesPixelsOfViews) {
  Sample sample;
  cv::Mat whole(6, 8, CV_8UC3);
  cv::randu(whole, 0, 256);
  sample.image = whole(cv::Rect(1, 2, 5, 3));
  const auto after = decode_sample(encode(sample), "here");
  EXPECT_EQ(cv::norm(after.image.stored_pixels(), sample.image.stored_pixels(), cv::NORM_INF), 0);
}

TEST(SampleCodec, KeepsAnnotationsOfRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto data = coco_mini();
  const DetectionSource source(open_split(data, data.train), /*filter_empty=*/false);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const auto bytes = encode(source[i]);
    const auto after = decode_sample(bytes, "here");
    EXPECT_EQ(after.objects.segmentations, source[i].objects.segmentations);
    EXPECT_EQ(encode(after), bytes);
  }
}

TEST(SampleCodec, RejectsTruncatedOrExtraBytes) {
  const auto bytes = encode(full_sample());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decode_sample(bytes.substr(0, length), "here"), DataError) << length;
  EXPECT_THAT([&] { decode_sample(bytes + "x", "records.mdb record 3"); },
              ThrowsMessage<DataError>(
                  AllOf(StartsWith("records.mdb record 3: "), HasSubstr("bytes follow"))));
}

TEST(SampleCodec, RejectsDamagedBytes) {
  const auto bytes = encode(full_sample());
  Rng rng{1};
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = bytes;
    for (auto flips = rng.between(1, 4); flips > 0; --flips)
      damaged[rng.below(damaged.size())] ^= static_cast<char>(1 << rng.below(8));
    try {
      const auto sample = decode_sample(damaged, "here");
      encode(sample);  // a sample that decodes must be usable
    } catch (const DataError& error) {
      ASSERT_THAT(error.what(), HasSubstr("here: is not a valid sample"));
    }
  }
  refuse_noise([](const std::string& noise) { decode_sample(noise, "here"); });
}

TEST(SampleCodec, RejectsCountsLargerThanInput) {
  for (const char type :
       {'\xDD', '\xDF', '\xDB', '\xC6', '\xC9'})  // array, map, text, binary, extension
    EXPECT_THROW(decode_sample(std::string{type} + "\xFF\xFF\xFF\xF0", "here"), DataError);
  EXPECT_THROW(decode_sample(std::string(100'000, '\x91'), "here"), DataError)
      << "deeply nested lists";
}

TEST(SampleCodec, RejectsInvalidMembers) {
  const std::pair<const char*, void (*)(Sample&)> cases[] = {
      {"different numbers", [](Sample& s) { s.objects.classes.pop_back(); }},
      {"different numbers", [](Sample& s) { s.objects.segmentations.pop_back(); }},
      {"negative class", [](Sample& s) { s.objects.classes[1] = -1; }},
      {"crowd flag", [](Sample& s) { s.objects.crowd[1] = 2; }},
      {"ends before", [](Sample& s) { s.objects.boxes[0].x2 = -1; }},
      {"four finite", [](Sample& s) { s.objects.boxes[0].x1 = NAN; }},
      {"scale", [](Sample& s) { s.scale_y = 0; }},
      {"size", [](Sample& s) { s.width = -1; }},
      {"size", [](Sample& s) { s.height = 0; }},
      {"runs of a mask",
       [](Sample& s) {
         s.objects.segmentations[2] = coco::Rle{3, 4, {1, 5}};
       }},
      {"polygon", [](Sample& s) {
         s.objects.segmentations[1] = std::vector<coco::Polygon>{{1, 2, 3, 4}};
       }}};
  for (const auto& [why, change] : cases) {
    auto sample = full_sample();
    change(sample);
    const auto told = message_of<DataError>([&] { decode_sample(encode(sample), "here"); });
    EXPECT_THAT(told, HasSubstr(why));
  }
  auto bytes = encode(full_sample());
  bytes.replace(bytes.find("schema") + 6, 1, "\x02");
  EXPECT_THAT([&] { decode_sample(bytes, "here"); },
              ThrowsMessage<DataError>(HasSubstr("schema 2 ")));
}

Batch full_batch() {
  Batch batch;
  batch.width = 5, batch.height = 4;
  batch.images = {{.image_id = -5'000'000'000,
                   .original_width = 10,
                   .original_height = 8,
                   .width = 5,
                   .height = 4,
                   .scale_x = 0.5F,
                   .scale_y = 0.5F},
                  {.image_id = 7,
                   .original_width = 4,
                   .original_height = 4,
                   .width = 3,
                   .height = 3,
                   .scale_x = 0.75F,
                   .scale_y = 0.75F}};
  batch.objects = {{{{0, 0, 3, 2}, {0.1F, 1, 4, 3}},
                    {3, 79},
                    {0, 1},
                    {std::vector<coco::Polygon>{{0.1, 0, 3.3, 0, 3, 2}}, coco::Rle{4, 5, {1, 19}}}},
                   {}};
  batch.pixels = std::make_shared<std::uint8_t[]>(batch.bytes());
  for (std::size_t i = 0; i < batch.bytes(); ++i)
    batch.pixels[i] = static_cast<std::uint8_t>(7 * i);
  return batch;
}

/// Copies the pixels as if they had been received from a socket or a file.
Frame received(const Batch& batch) {
  Frame frame{std::make_shared<std::uint8_t[]>(batch.bytes()), batch.bytes()};
  if (frame.size > 0) std::memcpy(frame.bytes.get(), batch.pixels.get(), frame.size);
  return frame;
}

Batch decoded(const Batch& batch) {
  return decode_batch(encode_header(batch), received(batch), "here");
}

TEST(BatchCodec, RoundTrips) {
  const auto before = full_batch();
  const auto after = decoded(before);
  EXPECT_EQ(after.width, 5);
  EXPECT_EQ(after.height, 4);
  EXPECT_EQ(after.images[1].image_id, 7);
  EXPECT_EQ(after.objects[0].segmentations, before.objects[0].segmentations);
  EXPECT_EQ(digest(after), digest(before));
  EXPECT_EQ(encode_header(after), encode_header(before));
  EXPECT_EQ(decoded(Batch{}).size(), 0U);
}

TEST(BatchCodec, CopiesNoPixels) {
  const auto batch = full_batch();
  const auto pixels = received(batch);
  EXPECT_EQ(decode_batch(encode_header(batch), pixels, "here").pixels, pixels.bytes);
}

TEST(BatchCodec, RejectsInvalidHeaders) {
  const auto whole = full_batch();
  const auto header = encode_header(whole);
  const auto pixels = received(whole);
  for (std::size_t length = 0; length < header.size(); ++length)
    EXPECT_THROW(decode_batch(header.substr(0, length), pixels, "here"), DataError);
  EXPECT_THAT([&] { decode_batch(header + "x", pixels, "batch 3 of tcp://node"); },
              ThrowsMessage<DataError>(
                  AllOf(StartsWith("batch 3 of tcp://node: "), HasSubstr("bytes follow"))));
  Rng rng{1};
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = header;
    damaged[rng.below(damaged.size())] ^= static_cast<char>(1 << rng.below(8));
    try {
      const auto batch = decode_batch(damaged, pixels, "here");
      ASSERT_EQ(digest(batch), digest(whole))
          << "a changed key may be ignored, a changed value may not";
    } catch (const DataError& error) {
      ASSERT_THAT(error.what(), HasSubstr("here: is not a valid batch"));
    }
  }
  refuse_noise([&](const std::string& noise) { decode_batch(noise, pixels, "here"); });
}

TEST(BatchCodec, RejectsMismatchedPixels) {
  const auto whole = full_batch();
  const auto complaint = [&](auto change) {
    auto pixels = received(whole);
    change(pixels);
    return message_of<DataError>([&] { decode_batch(encode_header(whole), pixels, "here"); });
  };
  EXPECT_EQ(complaint([](auto&) {}), "");
  EXPECT_THAT(complaint([](auto& f) { f.bytes[17] ^= 1; }), HasSubstr("checksum"));
  EXPECT_THAT(complaint([](auto& f) { f.size -= 1; }),
              AllOf(HasSubstr("119 bytes"), HasSubstr("120")));
}

TEST(BatchCodec, RejectsInvalidMembers) {
  const auto complaint = [](auto change) {
    auto batch = full_batch();
    change(batch);
    return message_of<DataError>([&] { decoded(batch); });
  };
  EXPECT_THAT(complaint([](Batch& b) { b.images[0].width = 6; }), HasSubstr("larger than"));
  EXPECT_THAT(complaint([](Batch& b) { b.images[0].scale_x = NAN; }), HasSubstr("scale"));
  EXPECT_THAT(complaint([](Batch& b) { b.images[1].original_width = -1; }), HasSubstr("original"));
  EXPECT_THAT(complaint([](Batch& b) { b.objects[0].classes[1] = -1; }),
              HasSubstr("negative class"));
  const auto whole = full_batch();
  auto header = encode_header(whole);
  header.replace(header.find("schema") + 6, 1, "\x02");
  EXPECT_THAT([&] { decode_batch(header, received(whole), "here"); },
              ThrowsMessage<DataError>(HasSubstr("schema 2 ")));
}

}  // namespace
}  // namespace millrace
