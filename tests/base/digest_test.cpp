#include "millrace/base/digest.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "millrace/base/sha256.h"

namespace millrace {
namespace {

TEST(Digest, MatchesXxh3ForAnySize) {
  std::vector<std::uint8_t> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 31 >> 3);
  for (const std::size_t size : {0, 1, 240, 241, 4095, 4096, 4097, 99'999, 100'000})
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{7}, ~std::uint64_t{0}})
      EXPECT_EQ(digest(bytes.data(), size, seed), XXH3_64bits_withSeed(bytes.data(), size, seed))
          << size << " bytes, seed " << seed;
}

TEST(Digest, MatchesSha256TestVectors) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, OfPartsEqualsDigestOfWhole) {
  const std::string whole(10'000, 'x');
  const std::string_view view = whole;
  const std::vector parts{view.substr(0, 1), view.substr(1, 5000), view.substr(5001)};
  EXPECT_EQ(digest_of_parts(parts), digest(whole.data(), whole.size()));
}

}  // namespace
}  // namespace millrace
