#include "millrace/trainer/run/recipe.h"

#include <gmock/gmock.h>

#include "millrace/base/errors.h"
#include "tests/support/fake_training.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct LineOptions {
  double slope = 1;
  void describe(Options& o) { o.add("slope", slope, "of the line", {.min = 0}); }
};

MILLRACE_REGISTER(register_detector<testing::LineDetector, LineOptions>("line", "fits a line"));

const std::string kModel = "[model]\ntype = 'line'\n";

std::string complaint(const std::string& toml) {
  return testing::message_of<ConfigError>([&] { resolve(parse_config(toml, "a.toml")); });
}

TEST(Recipe, IsCompleteFromAModelsNameAlone) {
  const auto recipe = resolve(parse_config(kModel, "a.toml"));
  EXPECT_EQ(recipe.model_type, "line");
  EXPECT_EQ(recipe.train.epochs, 12);
  std::vector<std::string> names;
  for (const auto& callback : recipe.callbacks) names.push_back(callback.name);
  EXPECT_THAT(names, UnorderedElementsAre("progress", "log", "checkpoint", "evaluate", "pictures",
                                          "figures", "throughput", "watchdog"));
  const auto text = to_toml(recipe.tree, /*origins=*/true);
  EXPECT_THAT(text, HasSubstr("a.toml:2:8"));
  EXPECT_THAT(text, HasSubstr("slope = 1.0"));
  EXPECT_THAT(text, HasSubstr("[callbacks.checkpoint]"));
}

TEST(Recipe, ResolvesItsOwnOutputToTheSame) {
  const auto once = to_toml(resolve(parse_config(kModel, "a.toml")).tree);
  EXPECT_EQ(to_toml(resolve(parse_config(once, "b.toml")).tree), once);
}

TEST(Recipe, SaysWhereAPeriodIsNone) {
  EXPECT_THAT(complaint(kModel + "[callbacks.checkpoint]\nkeep_every = 'often'\n"),
              HasSubstr("a.toml:4:14: keep_every"));
  EXPECT_THAT(complaint(kModel + "[callbacks.tensorboard]\nhistograms = '2 parsecs'\n"),
              HasSubstr("a.toml:4:14: histograms"));
  EXPECT_THAT(complaint(kModel + "[callbacks.watchdog]\nafter = '3 steps'\n"),
              HasSubstr("a.toml:4:9: after = \"3 steps\" is no duration"));
  EXPECT_THAT(complaint(kModel + "[callbacks.watchdog]\nafter = ''\n"),
              HasSubstr("a.toml:4:9: after = \"\" is no duration"));
  EXPECT_EQ(complaint(kModel + "[callbacks.watchdog]\nstep_limit = '1 minute'\n"), "");
}

TEST(Recipe, NamesCallbacksSoThatFilesCanBe) {
  EXPECT_THAT(complaint(kModel + "[callbacks.\"../best\"]\ntype = 'keep_best'\nmetric = 'loss'\n"),
              HasSubstr("letters, digits, '_' and '-': '../best'"));
}

TEST(Recipe, NamesTheNearestKeyEverywhere) {
  EXPECT_THAT(complaint(kModel + "[trian]\n"), HasSubstr("did you mean 'train'"));
  EXPECT_THAT(complaint(kModel + "[train]\nepoch = 1\n"), HasSubstr("did you mean 'epochs'"));
  EXPECT_THAT(complaint(kModel + "slop = 2\n"), HasSubstr("did you mean 'slope'"));
  EXPECT_THAT(complaint("[model]\ntype = 'lime'\n"), HasSubstr("did you mean 'line'"));
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
  EXPECT_THAT(complaint("[train]\n"), HasSubstr("[model] needs a type"));
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

const std::string kGroups =
    "[[optimizer.groups]]\nmatch = '*.bias'\nfrozen = true\n"
    "[[optimizer.groups]]\nmatch = 'line.*'\nlr_factor = 0.5\n";

TEST(Recipe, HasTheRulesForParametersInTheirOrder) {
  const auto recipe = resolve(parse_config(kModel + kGroups, "a.toml"));
  const auto& groups = recipe.optimizer.groups;
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].match, "*.bias");
  EXPECT_TRUE(groups[0].frozen);
  EXPECT_EQ(groups[1].lr_factor, 0.5);
  EXPECT_LT(groups[1].weight_decay, 0);
  const auto text = to_toml(recipe.tree);
  EXPECT_EQ(to_toml(resolve(parse_config(text, "b.toml")).tree), text);
}

TEST(Recipe, RefusesRulesAndOptimizersThatMakeNoSense) {
  EXPECT_THAT(complaint(kModel + "[[optimizer.groups]]\nlr_factor = 2\n"),
              HasSubstr("match must say which parameters are meant"));
  EXPECT_THAT(complaint(kModel + "[[optimizer.groups]]\nmatch = '*'\nlr = 2\n"),
              HasSubstr("unknown key 'lr'"));
  EXPECT_THAT(complaint(kModel + "[optimizer]\ngroups = 2\n"), HasSubstr("[[optimizer.groups]]"));
  EXPECT_THAT(complaint(kModel + "[optimizer]\ntype = 'adam'\n"), HasSubstr("sgd | adamw"));
  const auto adamw = kModel + "[optimizer]\ntype = 'adamw'\n";
  EXPECT_THAT(complaint(adamw + "nesterov = true\n"), HasSubstr("a.toml:5:12: nesterov is for"));
  EXPECT_THAT(complaint(adamw + "momentum = 1\n"), HasSubstr("momentum must be below 1"));
  EXPECT_THAT(complaint(adamw + "trust = 'lars'\n"), HasSubstr("trust is for type = \"sgd\""));
  EXPECT_THAT(complaint(kModel + "[optimizer]\ntrust = 'larc'\nclip_value = 1\n"),
              HasSubstr("clip_value and trust exclude each other"));
  EXPECT_THAT(complaint(kModel + "[optimizer]\naccumulate = 0\n"), HasSubstr("accumulate"));
}

TEST(Recipe, RefusesALossScaleForWhatHasNone) {
  EXPECT_THAT(complaint(kModel + "[train]\nloss_scale = 1024\nprecision = 'bf16'\n"),
              HasSubstr("a.toml:4:14: loss_scale is for precision = \"fp16\" alone"));
  EXPECT_EQ(complaint(kModel + "[train]\nloss_scale = 1024\nprecision = 'fp16'\n"), "");
}

TEST(Recipe, RefusesASchedulePastTheEndOfTheRun) {
  EXPECT_THAT(complaint(kModel + "[schedule]\nmilestones = [8, 12]\n"),
              HasSubstr("a.toml:4:14: milestones has 12, which is not before the end of the run, "
                        "train.epochs = 12"));
}

TEST(Recipe, RefusesWhatChangesNothingInItsCombination) {
  const auto refused = [](const std::string& table, const std::string& key,
                          const std::string& with) {
    EXPECT_THAT(complaint(kModel + table), HasSubstr(key + " changes nothing " + with)) << table;
  };
  const std::string schedule = "[schedule]\ntype = 'cosine'\n", optimizer = "[optimizer]\n";
  refused(schedule + "milestones = [6, 8]\n", "a.toml:5:14: milestones", "with type = \"cosine\"");
  refused(schedule + "gamma = 0.5\n", "gamma", "with type = \"cosine\"");
  refused(schedule + "power = 2\n", "power", "with type = \"cosine\"");
  refused("[schedule]\nwarmup = '0 steps'\nwarmup_factor = 0.5\n", "warmup_factor", "without a");
  refused(optimizer + "beta2 = 0.9\n", "beta2", "with type = \"sgd\"");
  refused(optimizer + "trust_coefficient = 1\n", "trust_coefficient", "with trust = \"none\"");
  refused(optimizer + "nesterov = true\nmomentum = 0\n", "nesterov", "with momentum = 0");
  refused("[[optimizer.groups]]\nmatch = '*'\nfrozen = true\nlr_factor = 2\n", "lr_factor",
          "with frozen = true");
  refused("[data]\non_error = 'fail'\nmax_skipped = 0.5\n", "max_skipped", "with on_error");
  refused("[data]\nshape_buckets = 4\naspect_grouping = false\n", "aspect_grouping", "with shape");
  refused(
      "[data]\nflip = 0.1\nstages = [{ type = 'read' }, { type = 'decode' }, { type = "
      "'group_by_aspect_ratio' }, { type = 'pad' }]\n",
      "a.toml:4:8: flip", "since no stage of [[data.stages]] leaves that to it");
}

TEST(Recipe, TakesDefaultsWhereverTheyAreWritten) {
  EXPECT_EQ(
      complaint(kModel + "[schedule]\ntype = 'cosine'\nmilestones = [8, 11.0]\npower = 0.9\n"), "");
}

TEST(Recipe, NamesCallbacksFreelyAndTurnsThemOff) {
  const auto recipe =
      resolve(parse_config(kModel + "[callbacks.best_masks]\ntype = 'keep_best'\n"
                                    "metric = 'segm/AP'\n[callbacks.pictures]\nenabled = false\n",
                           "a.toml"));
  bool found = false;
  for (const auto& callback : recipe.callbacks) {
    EXPECT_NE(callback.name, "pictures");
    if (callback.name != "best_masks") continue;
    found = true;
    EXPECT_EQ(callback.type, "keep_best");
    EXPECT_FALSE(callback.table.find("type"));
  }
  EXPECT_TRUE(found);
  make_callbacks(recipe);
}

}  // namespace
}  // namespace millrace
