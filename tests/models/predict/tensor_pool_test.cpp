#include "millrace/models/predict/tensor_pool.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace millrace::testing {
namespace {

constexpr std::int64_t kMiB = 1 << 20;  // bytes

at::Tensor bytes(std::int64_t count) { return at::empty({count}, at::kByte); }

/// As a network does: many tensors of a few sizes, at most three at a time.
void one_image(std::int64_t scale) {
  auto x = bytes(8 * scale);
  for (int layer = 0; layer < 12; ++layer) {
    const auto wide = bytes((8 >> layer / 4) * scale);
    x = bytes((4 >> layer / 4) * scale);
  }
}

TEST(TensorPool, TheNextImageNeedsNoNewMemory) {
  const TensorPool pool;
  const TensorPool::Scope keeps(pool);
  one_image(5 * kMiB);
  const auto made = pool.blocks_made();
  EXPECT_GT(made, 0U);
  for (int image = 0; image < 5; ++image) one_image(5 * kMiB);
  one_image(5 * kMiB - 100'000);  // a little smaller
  EXPECT_EQ(pool.blocks_made(), made);
}

TEST(TensorPool, KeepsLittleMoreThanWasOnceInUse) {
  const TensorPool pool;
  const TensorPool::Scope keeps(pool);
  for (std::int64_t scale = 2 * kMiB; scale < 30 * kMiB; scale += 3 * kMiB) {
    one_image(scale);
    EXPECT_LE(pool.kept(), static_cast<std::size_t>(20 * scale * 5 / 4 * 9 / 8));
  }
}

TEST(TensorPool, IsOfItsScopeAndThreadAlone) {
  const TensorPool pool;
  bytes(2 * kMiB);
  {
    const TensorPool::Scope keeps(pool);
    std::thread([] { bytes(2 * kMiB); }).join();
    bytes(1000);  // small
    EXPECT_EQ(pool.blocks_made(), 0U);
    const TensorPool other;
    {
      const TensorPool::Scope inner(other);
      bytes(2 * kMiB);
    }
    EXPECT_EQ(other.blocks_made(), 1U);
    EXPECT_EQ(pool.blocks_made(), 0U);
    bytes(2 * kMiB);
    EXPECT_EQ(pool.blocks_made(), 1U);
  }
  bytes(2 * kMiB);
  EXPECT_EQ(pool.blocks_made(), 1U);
}

TEST(TensorPool, TensorsOutliveItAndMayEndOnAnotherThread) {
  std::optional<TensorPool> pool(std::in_place);
  at::Tensor kept, given;
  {
    const TensorPool::Scope keeps(*pool);
    kept = at::full({kMiB}, 7, at::kInt);
    given = at::full({kMiB}, 8, at::kInt);
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept.data_ptr()) % 64, 0U);
  std::thread([&] { given.reset(); }).join();
  EXPECT_GT(pool->kept(), 0U);
  pool.reset();
  EXPECT_EQ(kept.sum().item<std::int64_t>(), 7 * kMiB);
}

}  // namespace
}  // namespace millrace::testing
