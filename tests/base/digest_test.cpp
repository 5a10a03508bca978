#include "millrace/base/digest.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace millrace {
namespace {

TEST(Digest, IsXxh3WhateverTheProcessorCanDo) {
  std::vector<std::uint8_t> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 31 >> 3);
  for (const std::size_t size : {0, 1, 240, 241, 4095, 4096, 4097, 99'999, 100'000})
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}})
      EXPECT_EQ(digest(bytes.data(), size, seed), XXH3_64bits_withSeed(bytes.data(), size, seed))
          << size << " bytes, seed " << seed;
}

TEST(Digest, OfPartsIsThatOfTheWhole) {
  const std::string whole(10'000, 'x');
  const std::string_view view = whole;
  const std::vector parts{view.substr(0, 1), view.substr(1, 5000), view.substr(5001)};
  EXPECT_EQ(digest_of_parts(parts), digest(whole.data(), whole.size()));
}

}  // namespace
}  // namespace millrace
