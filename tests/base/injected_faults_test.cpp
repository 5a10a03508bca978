// MILLRACE_FAULTS says what it means, or is refused part by part.
#include "millrace/base/process/injected_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/errors.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(InjectedFaults, AreReadPartByPart) {
  const auto faults = parse_faults(
      "seed=7,server.drop=0.01,server.delay=0.05:0.2s,server.corrupt=0.02,server.duplicate=1,"
      "rank.delay=0.02:500ms,rank1.drop=0.25");
  EXPECT_EQ(faults.seed, 7U);
  EXPECT_EQ(faults.server.drop, 0.01);
  EXPECT_EQ(faults.server.delay, 0.05);
  EXPECT_EQ(faults.server.delay_s, 0.2);
  EXPECT_EQ(faults.server.corrupt, 0.02);
  EXPECT_EQ(faults.server.duplicate, 1);
  EXPECT_EQ(faults.of_rank(0).delay_s, 0.5);
  EXPECT_EQ(faults.of_rank(0).drop, 0);
  EXPECT_EQ(faults.of_rank(1).drop, 0.25);
  EXPECT_EQ(faults.of_rank(1).delay, 0) << "rank 1 has its own faults instead";
}

TEST(InjectedFaults, NameThePartThatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "a part is such as"},
      {"server.drop", "a part is such as"},
      {"server.drop=2", "'2' is no probability"},
      {"server.drop=-0.1", "no probability"},
      {"server.drop=nan", "no probability"},
      {"server.drop=0.1x", "no probability"},
      {"server.delay=0.1", "a probability and a time"},
      {"server.delay=0.1:5", "no time"},
      {"server.delay=0.1:-5s", "no time"},
      {"server.lose=0.1", "drop, corrupt, duplicate and delay"},
      {"servers.drop=0.1", "there is no 'servers.drop'"},
      {"rank.corrupt=0.1", "nobody could tell"},
      {"rank.duplicate=0.1", "deliver a message once"},
      {"rank2.explode=0.1", "drop and delay"},
      {"rank-1.drop=0.1", "there is no 'rank-1.drop'"},
      {"rankx.drop=0.1", "there is no"},
      {"seed=-1", "a whole number"},
      {"seed=", "a whole number"}};
  for (const auto& [part, why] : cases)
    EXPECT_THAT([&] { parse_faults("seed=1," + part); },
                ThrowsMessage<ConfigError>(
                    AllOf(HasSubstr("MILLRACE_FAULTS: '" + part + "'"), HasSubstr(why))));
}

}  // namespace
}  // namespace millrace::testing
