// Variants, and what makes a plan another one.
#include "millrace/study/study_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/study/study_folder.h"
#include "tests/support/scratch.h"

namespace millrace::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StudyPlan plan_with(std::vector<Varied> varied, std::int64_t seeds = 2) {
  return {.config_file = "/a/exp.toml",
          .settings = {},
          .varied = std::move(varied),
          .seeds = seeds,
          .maths_threads = 2,
          .configuration = {{"optimizer.lr", "0.01"}, {"train.epochs", "12"}}};
}

TEST(StudyPlan, ValuesAreDividedAtCommasThatNothingEncloses) {
  const auto varied = read_varied(R"(data.size=[640, 800],'a,b', {x = 1, y = 2},"c,")");
  EXPECT_EQ(varied.key, "data.size");
  EXPECT_THAT(varied.values, ElementsAre("[640, 800]", "'a,b'", "{x = 1, y = 2}", "\"c,\""));
}

TEST(StudyPlan, WrongValuesAreNamed) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"optimizer.lr", "takes a key and its values"},
           {"=1,2", "takes a key and its values"},
           {"optimizer.lr=0.1", "two values or more"},
           {"optimizer.lr=0.1,", "empty value"},
           {"optimizer.lr=0.1,0.2,0.1", "has 0.1 twice"}})
    try {
      read_varied(text);
      ADD_FAILURE() << text;
    } catch (const ConfigError& problem) {
      EXPECT_THAT(problem.what(), HasSubstr(why));
      EXPECT_THAT(problem.what(), HasSubstr("--vary " + text));
    }
}

TEST(StudyPlan, VariantsAreTheCrossProduct) {
  const auto all = variants_of(plan_with({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}}));
  ASSERT_EQ(all.size(), 6);
  EXPECT_EQ(all[0].name, "a=1, b=x");
  EXPECT_EQ(all[1].name, "a=1, b=y");
  EXPECT_THAT(all[5].settings, ElementsAre("a=2", "b=z"));
  EXPECT_EQ(variants_of(plan_with({})).at(0).name, "exp");
}

TEST(StudyPlan, AnotherPlanIsToldByWhatDiffers) {
  const auto plan = plan_with({{"optimizer.lr", {"0.01", "0.02"}}});
  EXPECT_THAT(differences(plan, plan), IsEmpty());
  auto other = plan;
  other.configuration["train.epochs"] = "24";
  EXPECT_THAT(differences(plan, other), ElementsAre("train.epochs is 12 there and 24 here"));
  EXPECT_THAT(differences(plan, plan_with({{"optimizer.lr", {"0.01", "0.03"}}})),
              ElementsAre("--vary optimizer.lr is 0.01,0.02 there and 0.01,0.03 here"));
  EXPECT_THAT(differences(plan, plan_with({})),
              ElementsAre("--vary optimizer.lr is 0.01,0.02 there and not varied here"));
  other = plan;
  other.config_file = "/a/other.toml";
  EXPECT_THAT(differences(plan, other),
              ElementsAre("the configuration's name is exp there and other here"));
  other.config_file = "/moved/exp.toml";
  other.maths_threads = 1;
  EXPECT_THAT(differences(plan, other), IsEmpty());
  EXPECT_THAT(differences(plan, plan_with(plan.varied, 1)),
              ElementsAre("--seeds is 2 there and 1 here"));
}

TEST(StudyPlan, MoreSeedsGoOnAndKeepTheThreads) {
  const auto plan = plan_with({{"optimizer.lr", {"0.01", "0.02"}}});
  auto study = new_study(plan);
  ASSERT_EQ(study.runs.size(), 4);
  study.runs[1].state = RunState::done;
  auto more = plan_with(plan.varied, 3);
  more.maths_threads = 7;
  ASSERT_THAT(differences(plan, more), IsEmpty());
  const auto longer = continued(study, more);
  ASSERT_EQ(longer.runs.size(), 6);
  EXPECT_EQ(longer.runs[1].state, RunState::done);
  EXPECT_EQ(longer.runs[5].folder, "optimizer.lr=0.02-seed-3");
  EXPECT_EQ(longer.plan.maths_threads, 2);
}

TEST(StudyFolder, WhatIsWrittenIsRead) {
  const testing::Scratch folder;
  EXPECT_FALSE(read_study(folder.path()));
  auto study = new_study(plan_with({{"data.classes", {"[\"a/b\"]", "[\"a:b\"]"}}}));
  study.runs[0].state = RunState::failed;
  study.runs[0].why = "signal 9 (Killed)";
  write_study(folder.path(), study);
  const auto read = read_study(folder.path()).value();
  EXPECT_EQ(read.runs[0].state, RunState::failed);
  EXPECT_EQ(read.runs[0].why, "signal 9 (Killed)");
  EXPECT_EQ(read.runs[3].state, RunState::waiting);
  EXPECT_THAT(differences(read.plan, study.plan), IsEmpty());
  EXPECT_EQ(read.title(read.runs[0]), "data.classes=[\"a/b\"], seed 1");
  EXPECT_NE(read.runs[0].folder, read.runs[1].folder) << "two names for two variants";
  EXPECT_EQ(read.runs[0].folder.find('/'), std::string::npos);

  folder.file(kStudyFile, "{");
  EXPECT_THROW(read_study(folder.path()), ConfigError);
}

}  // namespace
}  // namespace millrace::study
