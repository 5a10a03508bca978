// Batches for tests of serving. They depend only on their stream and number.
#pragma once

#include <unistd.h>

#include <chrono>
#include <deque>
#include <thread>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/serving/messages.h"
#include "millrace/dataflow/serving/server.h"

namespace millrace::testing {

/// Size, delay and faults of generated batches.
struct Making {
  std::int32_t side = 32;             // width and height of the images in pixels
  std::chrono::microseconds time{0};  // time to make a batch
  std::int64_t broken = -1;           // number of the batch that fails; -1 = none
  BufferPool memory = {};
};

inline Made<Batch> made_batch(const serving::Stream& stream, std::int64_t number,
                              const Making& making = {}) {
  if (number == making.broken)
    return {number, std::nullopt,
            std::make_exception_ptr(DataError("picture.jpg", "not a readable JPEG"))};
  Rng rng{stream.seed, static_cast<std::uint64_t>(stream.share.rank),
          static_cast<std::uint64_t>(stream.start.next), static_cast<std::uint64_t>(number)};
  Batch batch;
  batch.width = batch.height = making.side;
  for (int i = 0; i < 2; ++i) {
    batch.images.push_back(
        {rng.between(0, 1000), making.side, making.side, making.side, making.side, 1, 1});
    batch.objects.push_back({{{1, 2, 3, static_cast<float>(rng.between(4, 30))}},
                             {0},
                             {0},
                             {coco::Segmentation(coco::Rle{2, 2, {1, 3}})}});
  }
  batch.pixels = making.memory.acquire(batch.bytes());
  for (std::size_t i = 0; i < batch.bytes(); ++i)
    batch.pixels[i] = i < 1024 ? static_cast<std::uint8_t>(rng()) : static_cast<std::uint8_t>(i);
  const auto next = stream.start.next + 2 * (number + 1) * stream.share.ranks;
  return {number,
          Delivery<Batch>{std::move(batch),
                          {next, {next - 1}},
                          next / 100,
                          static_cast<double>(next) / 100,
                          number},
          nullptr};
}

/// Returns a digest of everything that a consumer receives with a batch.
inline std::uint64_t digest_of(const Delivery<Batch>& item) {
  const auto sum =
      digest(item.number, digest(item.epoch, digest(item.progress, digest(item.value))));
  return digest(item.cursor.next, digest(item.cursor.pending, sum));
}

/// Returns the digests of `count` batches of a stream, starting at `first`.
inline std::vector<std::uint64_t> expected_digests(const serving::Stream& stream, int count,
                                                   const Making& making = {}, int first = 0) {
  std::vector<std::uint64_t> result;
  for (int k = first; k < first + count; ++k)
    result.push_back(digest_of(*made_batch(stream, k, making).item));
  return result;
}

/// Makes batches when they are taken, in a different order from the requests.
class MadeBatches final : public NumberedFlow<Batch> {
 public:
  MadeBatches(serving::Stream stream, WakeUp ready, Making making)
      : stream_(std::move(stream)), ready_(std::move(ready)), making_(making) {}

  void ask(std::int64_t number) override {
    if (number % 3 == 0)
      asked_.push_front(number);
    else
      asked_.push_back(number);
    ready_();
  }
  std::optional<Made<Batch>> take() override {
    if (asked_.empty()) return std::nullopt;
    std::this_thread::sleep_for(making_.time);
    const auto number = asked_.front();
    asked_.pop_front();
    return made_batch(stream_, number, making_);
  }
  std::int64_t epoch_size() const override { return 100; }
  FlowReport report() const override { return {}; }

 private:
  const serving::Stream stream_;
  const WakeUp ready_;
  const Making making_;
  std::deque<std::int64_t> asked_;
};

inline serving::StartStream make_batches(Making making = {}) {
  return [making](const serving::Stream& stream, WakeUp ready) {
    return std::make_unique<MadeBatches>(stream, std::move(ready), making);
  };
}

/// Returns the description of generated batches that servers and consumers compare.
inline serving::Facts made_facts() { return {{"data.batch_size", "2"}, {"samples", "100"}}; }

}  // namespace millrace::testing
