// Pipelines are checked when they are built, whether declared in C++ or in TOML.
#include "millrace/dataflow/engine/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/config.h"
#include "tests/dataflow/flows.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using testing::drain;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Throws;

struct Word {
  std::string text;
};

/// Stages of a flow of words. The context is the list that the flow reads from.
using Words = std::shared_ptr<const std::vector<Word>>;
using WordStages = Registry<StageFactory<Words>>;

struct RepeatOptions {
  std::int64_t times = 2;
  void describe(Options& o) { o.add("times", times, "how often", {.min = 1, .max = 9}); }
};

const WordStages& word_stages() {
  static const WordStages stages = [] {
    WordStages all("stage");
    all.add<NoOptions>("read", "words",
                       [](const Config&, const Words& w) { return source_stage(w); });
    all.add<RepeatOptions>("repeat", "repeats the word", [](const Config& table, const Words&) {
      const auto options = read_options<RepeatOptions>(table, {"type"});
      return map_stage<Word>("repeat", [options](Word word) {
        std::string text;
        for (std::int64_t i = 0; i < options.times; ++i) text += word.text;
        return Word{text};
      });
    });
    all.add<NoOptions>("pair", "groups two words",
                       [](const Config&, const Words&) { return group_stage<Word>("pair", 2); });
    all.add<NoOptions>("join", "joins a group of words", [](const Config&, const Words&) {
      return map_stage<std::vector<Word>>("join", [](std::vector<Word> words) {
        std::string text;
        for (const auto& word : words) text += word.text;
        return text;
      });
    });
    return all;
  }();
  return stages;
}

std::unique_ptr<DataFlow<std::string>> words_through(const std::string& toml) {
  const auto config = parse_config(toml, "words.toml");
  const auto& tables = std::get<Config::Array>(config.find("stages")->data);
  const auto words = std::make_shared<const std::vector<Word>>(
      std::vector<Word>{{"mill"}, {"race"}, {"water"}, {"wheel"}});
  return start_flow<std::string>({4, build_stages(word_stages(), tables, words)}, {});
}

std::string error_of(const std::string& toml) {
  return testing::message_of<ConfigError>([&] { words_through(toml); });
}

TEST(Pipeline, RunsStagesFromTables) {
  const auto flow = words_through(R"(stages = [ { type = "read" }, { type = "repeat", times = 3 },
                                                { type = "pair" }, { type = "join" } ])");
  EXPECT_THAT(drain(*flow),
              ElementsAre("millmillmillraceracerace", "waterwaterwaterwheelwheelwheel"));
}

TEST(Pipeline, ReportsMismatchedStageTypes) {
  EXPECT_THAT(error_of(R"(stages = [ { type = "read" }, { type = "repeat" }, { type = "join" } ])"),
              ContainsRegex("^words.toml:1:52: .*'join' .*a group of Words.*'repeat' .*a Word$"));
  EXPECT_THAT(error_of(R"(stages = [ { type = "repeat" } ])"),
              ContainsRegex("^words.toml:1:12: .*'repeat' .*a Word.*source .*an Index$"));
  EXPECT_THAT(error_of(R"(stages = [ { type = "read" }, { type = "repeat" } ])"),
              ContainsRegex("^words.toml:1:31: .*'repeat' .*a Word.*a string$"));
}

TEST(Pipeline, RejectsSecondGroupStage) {
  auto plan = from(std::vector<int>{1, 2, 3}).group(2).group(2).plan();
  EXPECT_THAT([&] { check(plan); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("second stage")));
}

TEST(Pipeline, RejectsGroupingByUnknownType) {
  auto plan = from(std::vector<int>{1, 2, 3}).plan();
  const auto key = [](const Word& word) { return word.text.size() % 2; };
  plan.stages.push_back(group_stage<int, Word>("by_length", key, 2, 4));
  EXPECT_THAT([&] { check(plan); }, ::testing::ThrowsMessage<ConfigError>(
                                        ContainsRegex("'by_length' .*a Word.*source .*an int$")));
  plan.about.reset();
  EXPECT_THAT([&] { check(plan); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("does not describe")));
}

TEST(Pipeline, SuggestsNearestStage) {
  EXPECT_THAT(error_of("stages = [\n  { type = \"repaet\" } ]"),
              ContainsRegex("^words.toml:2:3: .*'repaet'.*'repeat'"));
}

TEST(Pipeline, ChecksStageOptions) {
  EXPECT_THAT(error_of(R"(stages = [ { type = "read" }, { type = "repeat", times = 10 } ])"),
              HasSubstr("times"));
  EXPECT_THAT(error_of(R"(stages = [ { type = "read" }, { type = "repeat", tmies = 3 } ])"),
              HasSubstr("did you mean 'times'?"));
  EXPECT_THAT(error_of("stages = [ { times = 3 } ]"), HasSubstr("type = "));
}

TEST(Pipeline, RejectsPipelineWithoutReader) {
  EXPECT_THROW(check({0, {}}), ConfigError);
  EXPECT_THROW(check({3, {}}), ConfigError);
  EXPECT_THROW(check({3, {group_stage<Index>("group", 2)}}), ConfigError);
}

}  // namespace
}  // namespace millrace
