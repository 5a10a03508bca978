// Batches as a header and frames: what goes in comes out without a copy, and nothing else gets
// through.
#include "millrace/dataflow/store/batch_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "millrace/base/errors.h"
#include "millrace/base/random.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

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

/// The frames as they come out of a socket or a file.
std::vector<Frame> received(const EncodedBatch& encoded) {
  std::vector<Frame> frames;
  for (const auto bytes : encoded.frames) {
    frames.push_back({std::make_shared<std::uint8_t[]>(bytes.size()), bytes.size()});
    if (!bytes.empty()) std::memcpy(frames.back().bytes.get(), bytes.data(), bytes.size());
  }
  return frames;
}

Batch decoded(const EncodedBatch& encoded) {
  return decode_batch(encoded.header, received(encoded), "here");
}

TEST(BatchCodec, GivesBackWhatWentIn) {
  const auto before = full_batch();
  const auto after = decoded(encode(before));
  EXPECT_EQ(after.width, 5);
  EXPECT_EQ(after.height, 4);
  EXPECT_EQ(after.images[1].image_id, 7);
  EXPECT_EQ(after.objects[0].segmentations, before.objects[0].segmentations);
  EXPECT_EQ(digest(after), digest(before));
  EXPECT_EQ(encode(after).header, encode(before).header);
  EXPECT_EQ(decoded(encode(Batch{})).size(), 0U);
}

TEST(BatchCodec, CopiesNoPixels) {
  const auto batch = full_batch();
  const auto encoded = encode(batch);
  ASSERT_EQ(encoded.frames.size(), 1U);
  EXPECT_EQ(static_cast<const void*>(encoded.frames[0].data()), batch.pixels.get());
  const auto frames = received(encoded);
  EXPECT_EQ(decode_batch(encoded.header, frames, "here").pixels, frames[0].bytes);
}

TEST(BatchCodec, RefusesEveryOtherHeader) {
  const auto whole = full_batch();
  const auto encoded = encode(whole);
  const auto frames = received(encoded);
  for (std::size_t length = 0; length < encoded.header.size(); ++length)
    EXPECT_THROW(decode_batch(encoded.header.substr(0, length), frames, "here"), DataError);
  EXPECT_THAT(
      [&] { decode_batch(encoded.header + "x", frames, "batch 3 of tcp://node"); },
      ThrowsMessage<DataError>("batch 3 of tcp://node: is no batch: bytes follow the batch"));
  Rng rng{1};
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = encoded.header;
    damaged[rng.below(damaged.size())] ^= static_cast<char>(1 << rng.below(8));
    try {
      const auto batch = decode_batch(damaged, frames, "here");
      ASSERT_EQ(digest(batch), digest(whole)) << "a key's spelling may not matter, values do";
    } catch (const DataError& error) {
      ASSERT_THAT(error.what(), HasSubstr("here: is no batch"));
    }
  }
  for (int round = 0; round < 20'000; ++round) {
    std::string noise(rng.below(200), '\0');
    for (auto& byte : noise) byte = static_cast<char>(rng.below(256));
    ASSERT_THROW(decode_batch(noise, frames, "here"), DataError);
  }
}

TEST(BatchCodec, RefusesOtherFrames) {
  const auto whole = full_batch();
  const auto encoded = encode(whole);
  const auto complaint = [&](auto change) -> std::string {
    auto frames = received(encoded);
    change(frames);
    return message_of<DataError>([&] { decode_batch(encoded.header, frames, "here"); });
  };
  EXPECT_EQ(complaint([](auto&) {}), "");
  EXPECT_THAT(complaint([](auto& f) { f[0].bytes[17] ^= 1; }), HasSubstr("bytes have changed"));
  EXPECT_THAT(complaint([](auto& f) { f[0].size -= 1; }), HasSubstr("119 bytes, 120 fill it"));
  EXPECT_THAT(complaint([](auto& f) { f.clear(); }), HasSubstr("one frame"));
  EXPECT_THAT(complaint([](auto& f) { f.push_back(f[0]); }), HasSubstr("one frame"));
}

TEST(BatchCodec, SaysWhatMakesNoSense) {
  const auto complaint = [](auto change) -> std::string {
    auto batch = full_batch();
    change(batch);
    return message_of<DataError>([&] { decoded(encode(batch)); });
  };
  EXPECT_THAT(complaint([](Batch& b) { b.images[0].width = 6; }), HasSubstr("larger than"));
  EXPECT_THAT(complaint([](Batch& b) { b.images[0].scale_x = NAN; }), HasSubstr("scale"));
  EXPECT_THAT(complaint([](Batch& b) { b.images[1].original_width = -1; }), HasSubstr("original"));
  EXPECT_THAT(complaint([](Batch& b) { b.objects[0].classes[1] = -1; }),
              HasSubstr("class is negative"));
  const auto whole = full_batch();
  auto encoded = encode(whole);
  encoded.header.replace(encoded.header.find("schema") + 6, 1, "\x02");
  EXPECT_THAT([&] { decoded(encoded); },
              ThrowsMessage<DataError>(HasSubstr("of schema 2, but this program reads 1")));
}

}  // namespace
}  // namespace millrace
