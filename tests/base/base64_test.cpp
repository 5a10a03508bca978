#include "millrace/base/base64.h"

#include <gtest/gtest.h>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

TEST(Base64, RoundTrips) {
  std::string bytes;
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(37 * i);
  }
  EXPECT_EQ(to_base64("light wor"), "bGlnaHQgd29y");
  EXPECT_EQ(to_base64("light wo"), "bGlnaHQgd28=");
  EXPECT_THROW(from_base64("a*b"), Error);
}

}  // namespace
}  // namespace millrace
