#include "tests/bench/serving/batches.h"

#include <cstring>
#include <utility>

#include "millrace/base/random.h"

namespace millrace::bench {
namespace {

constexpr int kImages = 4, kHeight = 800, kWidth = 1216, kDistinct = 8;

Batch make_batch(Rng& rng, const BufferPool& pool) {
  Batch batch;
  batch.height = kHeight;
  batch.width = kWidth;
  for (int i = 0; i < kImages; ++i) {
    batch.images.push_back({i, kWidth, kHeight, kWidth, kHeight, 1, 1});
    Instances objects;
    for (auto count = rng.between(1, 19); count > 0; --count)
      append(objects, {{{1, 2, 30, static_cast<float>(rng.uniform(3, 800))}},
                       {0},
                       {0},
                       {coco::Segmentation{}}});
    batch.objects.push_back(std::move(objects));
  }
  batch.pixels = pool.acquire(batch.bytes());
  for (std::size_t k = 0; k < batch.bytes(); k += 8) {
    const auto bits = rng();
    std::memcpy(batch.pixels.get() + k, &bits, 8);
  }
  return batch;
}

}  // namespace

std::vector<Batch> make_batches(const BufferPool& pool) {
  Rng rng{1};
  std::vector<Batch> batches;
  for (int k = 0; k < kDistinct; ++k) batches.push_back(make_batch(rng, pool));
  return batches;
}

}  // namespace millrace::bench
