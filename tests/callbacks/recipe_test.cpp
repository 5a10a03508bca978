#include "trainer/recipe.h"

#include <gmock/gmock.h>

#include "base/errors.h"
#include "tests/fake_training.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct LineOptions {
  double slope = 1;
  void describe(Options& o) { o.add("slope", slope, "of the line", {.min = 0}); }
};

const bool registered = detectors().add<LineOptions>(
    "line", "fits a line", [](const Config&, const ModelContext&) -> std::unique_ptr<Detector> {
      return std::make_unique<testing::LineDetector>();
    });

const std::string kModel = "[model]\nname = 'line'\n";

std::string complaint(const std::string& toml) {
  try {
    resolve(parse_config(toml, "a.toml"));
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "";
}

TEST(Recipe, IsCompleteFromAModelsNameAlone) {
  const auto recipe = resolve(parse_config(kModel, "a.toml"));
  EXPECT_EQ(recipe.model_name, "line");
  EXPECT_EQ(recipe.train.epochs, 12);
  std::vector<std::string> names;
  for (const auto& callback : recipe.callbacks) names.push_back(callback.name);
  EXPECT_THAT(names, UnorderedElementsAre("progress", "log", "checkpoint", "evaluate", "pictures"));
  const auto text = to_toml(recipe.tree, /*origins=*/true);
  EXPECT_THAT(text, HasSubstr("a.toml:2:8"));
  EXPECT_THAT(text, HasSubstr("slope = 1.0"));
  EXPECT_THAT(text, HasSubstr("[callbacks.checkpoint]"));
}

TEST(Recipe, ResolvesItsOwnOutputToTheSame) {
  const auto once = to_toml(resolve(parse_config(kModel, "a.toml")).tree);
  EXPECT_EQ(to_toml(resolve(parse_config(once, "b.toml")).tree), once);
}

TEST(Recipe, NamesTheNearestKeyEverywhere) {
  EXPECT_THAT(complaint(kModel + "[trian]\n"), HasSubstr("did you mean 'train'"));
  EXPECT_THAT(complaint(kModel + "[train]\nepoch = 1\n"), HasSubstr("did you mean 'epochs'"));
  EXPECT_THAT(complaint(kModel + "slop = 2\n"), HasSubstr("did you mean 'slope'"));
  EXPECT_THAT(complaint("[model]\nname = 'lime'\n"), HasSubstr("did you mean 'line'"));
  EXPECT_THAT(complaint(kModel + "[callbacks.chekpoint]\n"),
              HasSubstr("did you mean 'checkpoint'"));
  EXPECT_THAT(complaint(kModel + "[callbacks.checkpoint]\nkep = 2\n"),
              HasSubstr("did you mean 'keep'"));
  EXPECT_THAT(complaint(kModel + "[data.sample]\ntrian = 2\n"), HasSubstr("did you mean 'train'"));
}

TEST(Recipe, SaysWhereAValueIsWrong) {
  EXPECT_THAT(complaint(kModel + "slope = -1\n"), HasSubstr("a.toml:3:9"));
  EXPECT_THAT(complaint(kModel + "[callbacks.log]\nevery = '20'\n"),
              HasSubstr("a.toml:4:9: callbacks.log.every"));
  EXPECT_THAT(complaint(kModel + "[callbacks.log]\nevery = 20\n"), HasSubstr("takes a string"));
  EXPECT_THAT(complaint(kModel + "[data]\nstages = 3\n"), HasSubstr("[[data.stages]]"));
  EXPECT_THAT(complaint(kModel + "[data]\nsources = 3\n"), HasSubstr("[[data.sources]]"));
  EXPECT_THAT(complaint("train = 3\n" + kModel), HasSubstr("a table"));
  EXPECT_THAT(complaint("[train]\n"), HasSubstr("[model] needs a name"));
  EXPECT_THAT(complaint("[callbacks]\nlog = 3\n" + kModel), HasSubstr("[callbacks.log]"));
}

TEST(Recipe, SaysWhichPeriodOrConditionIsNone) {
  for (const auto* period : {"0 steps", "-1 epochs", "nan epochs", "1.5 steps", "2 weeks"})
    EXPECT_THAT(complaint(kModel + "[callbacks.evaluate]\nevery = '" + period + "'\n"),
                HasSubstr(std::string("a.toml:4:9: callbacks.evaluate.every: \"") + period));
  EXPECT_THAT(complaint(kModel + "[callbacks.evaluate]\nonly_if = 'epoch'\n"),
              HasSubstr("a.toml:4:11: callbacks.evaluate.only_if: \"epoch\" is no condition"));
  EXPECT_THAT(complaint(kModel + "[callbacks.progress]\nonly_if = 'epoch > 1'\n"),
              HasSubstr("callbacks.progress.only_if goes with `every`"));
  EXPECT_THAT(complaint(kModel + "[callbacks.progress]\nat_start = true\n"),
              HasSubstr("callbacks.progress.at_start goes with `every`"));
  EXPECT_EQ(complaint(kModel + "[callbacks.evaluate]\nonly_if = 'epoch > 1'\nat_start = true\n"),
            "");
}

TEST(Recipe, NamesCallbacksFreelyAndTurnsThemOff) {
  const auto recipe =
      resolve(parse_config(kModel + "[callbacks.best_masks]\nuse = 'keep_best'\n"
                                    "metric = 'segm/AP'\n[callbacks.pictures]\nenabled = false\n",
                           "a.toml"));
  bool found = false;
  for (const auto& callback : recipe.callbacks) {
    EXPECT_NE(callback.name, "pictures");
    if (callback.name != "best_masks") continue;
    found = true;
    EXPECT_EQ(callback.use, "keep_best");
    EXPECT_FALSE(callback.table.find("use"));
  }
  EXPECT_TRUE(found);
  make_callbacks(recipe);
}

}  // namespace
}  // namespace millrace
