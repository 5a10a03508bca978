#include "millrace/base/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace millrace {
namespace {

using ::testing::ThrowsMessage;

const ComponentName kOwn{"callback", "hello"}, kOfPlugin{"callback", "hello", "hello.so"};

TEST(Blaming, GivesWhatTheWorkGives) {
  EXPECT_EQ(blaming(kOwn, "describe", [] { return 7; }), 7);
}

TEST(Blaming, PutsComponentAndPlaceBeforeTheMessage) {
  const auto fails = [] { throw std::out_of_range("too far"); };
  EXPECT_THAT([&] { blaming(kOwn, "after_step", fails); },
              ThrowsMessage<Error>("callback 'hello' failed in after_step: too far"));
  EXPECT_THAT([&] { blaming(kOfPlugin, "after_step", fails); },
              ThrowsMessage<Error>("callback 'hello' of hello.so failed in after_step: too far"));
}

TEST(Blaming, NamesTheComponentEvenWhereItThrowsNoException) {
  EXPECT_THAT([] { blaming(kOwn, "describe", [] { throw 7; }); },
              ThrowsMessage<Error>("callback 'hello' failed in describe: it threw something that "
                                   "is no std::exception"));
}

TEST(Blaming, LeavesAConfigErrorAndAddsThePlugin) {
  const auto refuses = [] { throw ConfigError("a.toml:3:1: no such key"); };
  EXPECT_THAT([&] { blaming(kOwn, "create", refuses); },
              ThrowsMessage<ConfigError>("a.toml:3:1: no such key"));
  EXPECT_THAT([&] { blaming(kOfPlugin, "create", refuses); },
              ThrowsMessage<ConfigError>("callback 'hello' of hello.so: a.toml:3:1: no such key"));
}

}  // namespace
}  // namespace millrace
