#include "millrace/base/process/uncaught_exceptions.h"

#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <stdexcept>

#include "millrace/base/process/exit_codes.h"

namespace millrace {
namespace {

[[gnu::noinline]] void give_back() { throw std::runtime_error("the device has failed"); }

struct Memory {
  ~Memory() { give_back(); }
};

TEST(UncaughtExceptions, PrintMessageThrownByDestructor) {
  const auto end = [] {
    report_uncaught_exceptions();
    const Memory memory;
  };
  EXPECT_EXIT(end(), ::testing::ExitedWithCode(kFailed), "the device has failed");
}

TEST(UncaughtExceptions, AbortWithoutException) {
  const auto end = [] {
    report_uncaught_exceptions();
    std::terminate();
  };
  EXPECT_EXIT(end(), ::testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace millrace
