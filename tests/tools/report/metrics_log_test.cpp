// Reads metrics.jsonl at any stage of a run.
#include "millrace/tools/report/metrics_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace millrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MetricsLog, ReadsAllMetrics) {
  const auto log = read_metrics(
      "{\"step\":20,\"epoch\":0.5,\"time\":100.5,\"loss\":2.5}\n"
      "{\"step\":40,\"epoch\":1.0,\"time\":200,\"loss\":null,\"bbox/AP\":0.25}\n");
  ASSERT_EQ(log.of("loss").size(), 2);
  EXPECT_EQ(log.of("loss")[0].value, 2.5);
  EXPECT_TRUE(std::isnan(log.of("loss")[1].value));
  EXPECT_EQ(log.of("bbox/AP")[0].step, 40);
  EXPECT_THAT(log.of("none"), IsEmpty());
  EXPECT_EQ(log.last_step, 40);
  EXPECT_EQ(log.last_epoch, 1);
  EXPECT_EQ(log.first_time, 100.5);
  EXPECT_FALSE(log.is_cut);
}

/// After truncation at any byte, all complete lines are read.
TEST(MetricsLog, AcceptsTruncatedLog) {
  const std::string text =
      "{\"step\":20,\"epoch\":0.5,\"time\":100,\"loss\":2.5}\n"
      "{\"step\":40,\"epoch\":1,\"time\":200,\"loss\":1.5}\n";
  const std::size_t first = text.find('\n') + 1;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const auto log = read_metrics(text.substr(0, size));
    EXPECT_THAT(log.broken_lines, IsEmpty());
    const std::size_t whole = size + 1 >= text.size() ? 2 : size + 1 >= first ? 1 : 0;
    EXPECT_EQ(log.of("loss").size(), whole) << size;
    EXPECT_EQ(log.is_cut, whole < 2 && size > 0 && size != first && size + 1 != first) << size;
  }
}

TEST(MetricsLog, CountsInvalidLines) {
  const auto log = read_metrics(
      "{\"step\":1,\"loss\":1}\nnonsense\n[1]\n{\"loss\":3}\n\n"
      "{\"step\":2,\"loss\":\"text\",\"lr\":1}\n");
  EXPECT_THAT(log.broken_lines, ElementsAre(2, 3, 4));
  EXPECT_EQ(log.of("loss").size(), 1);
  EXPECT_EQ(log.of("lr").size(), 1);
}

TEST(MetricsLog, AssignsLateScoresToTheirStep) {
  const auto log =
      read_metrics("{\"step\":60,\"loss\":1,\"bbox/AP\":0.3}\n{\"step\":20,\"bbox/AP\":0.1}\n");
  EXPECT_EQ(log.of("bbox/AP")[0].step, 20);
  EXPECT_EQ(log.last_step, 60);
}

}  // namespace
}  // namespace millrace::report
