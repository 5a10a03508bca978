#include "millrace/trainer/run/recipe.h"

#include <gmock/gmock.h>

#include "millrace/base/errors.h"
#include "tests/support/fake_training.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

struct LineOptions {
  double slope = 1;
  void describe(Options& o) { o.add("slope", slope, "of the line", {.min = 0}); }
};

MILLRACE_REGISTER(register_detector<LineDetector, LineOptions>("line", "fits a line"));

const std::string kModel = "[model]\ntype = 'line'\n";

std::string complaint(const std::string& toml) {
  return message_of<ConfigError>([&] { resolve(parse_config(toml, "a.toml")); });
}

TEST(Recipe, IsCompleteWithModelTypeOnly) {
  const auto recipe = resolve(parse_config(kModel, "a.toml"));
  EXPECT_EQ(recipe.model_type, "line");
  EXPECT_EQ(recipe.train.epochs, 12);
  std::vector<std::string> names;
  for (const auto& callback : recipe.callbacks) names.push_back(callback.name);
  EXPECT_THAT(names, UnorderedElementsAre("progress", "log", "checkpoint", "evaluate", "pictures",
                                          "figures", "report", "throughput", "watchdog"));
  const auto text = to_toml(recipe.tree, /*origins=*/true);
  EXPECT_THAT(text, HasSubstr("a.toml:2:8"));
  EXPECT_THAT(text, HasSubstr("slope = 1.0"));
  EXPECT_THAT(text, HasSubstr("[callbacks.checkpoint]"));
}

TEST(Recipe, IsUnchangedIfResolvedAgain) {
  const auto once = to_toml(resolve(parse_config(kModel, "a.toml")).tree);
  EXPECT_EQ(to_toml(resolve(parse_config(once, "b.toml")).tree), once);
}

/// Pairs of TOML and the expected error; empty = valid.
using Complaints = std::vector<std::pair<std::string, std::string>>;

/// Resolves each TOML after a [model] table and expects its error.
void expect_complaints(const Complaints& complaints) {
  for (const auto& [toml, what] : complaints) {
    const auto said = complaint(kModel + toml);
    EXPECT_TRUE(what.empty() ? said.empty() : said.find(what) != said.npos) << toml << said;
  }
}

TEST(Recipe, ReportsInvalidPeriodsAndConditions) {
  expect_complaints(
      {{"[callbacks.checkpoint]\nkeep_every = 'often'\n", "a.toml:4:14: keep_every"},
       {"[callbacks.tensorboard]\nhistograms = '2 parsecs'\n", "a.toml:4:14: histograms"},
       {"[callbacks.watchdog]\nafter = '3 steps'\n", "a.toml:4:9: after = \"3 steps\""},
       {"[callbacks.watchdog]\nafter = ''\n", "a.toml:4:9: after = \"\""},
       {"[callbacks.watchdog]\nstep_limit = '1 minute'\n", ""},
       {"[schedule]\nwarmup = '2 weeks'\n", "a.toml:4:10: warmup = \"2 weeks\""},
       {"[schedule]\nwarmup_steps = 2\n", "a.toml:4:16: unknown key 'warmup_steps'"},
       {"[callbacks.evaluate]\nonly_if = 'epoch'\n",
        "a.toml:4:11: callbacks.evaluate.only_if: \"epoch\""},
       {"[callbacks.progress]\nonly_if = 'epoch > 1'\n",
        "callbacks.progress.only_if requires `every`"},
       {"[callbacks.progress]\nat_start = true\n", "callbacks.progress.at_start requires `every`"},
       {"[callbacks.evaluate]\nonly_if = 'epoch > 1'\nat_start = true\n", ""}});
  for (const std::string period : {"0 steps", "-1 epochs", "nan epochs", "1.5 steps", "2 weeks"})
    expect_complaints({{"[callbacks.evaluate]\nevery = '" + period + "'\n",
                        "a.toml:4:9: callbacks.evaluate.every: \"" + period}});
}

TEST(Recipe, SuggestsNearestKey) {
  expect_complaints({{"[trian]\n", "did you mean 'train'"},
                     {"[train]\nepoch = 1\n", "did you mean 'epochs'"},
                     {"slop = 2\n", "did you mean 'slope'"},
                     {"[callbacks.chekpoint]\n", "did you mean 'checkpoint'"},
                     {"[callbacks.checkpoint]\nkep = 2\n", "did you mean 'keep'"},
                     {"[data.sample]\ntrian = 2\n", "did you mean 'train'"}});
  EXPECT_THAT(complaint("[model]\ntype = 'lime'\n"), HasSubstr("did you mean 'line'"));
}

TEST(Recipe, ReportsInvalidValues) {
  expect_complaints(
      {{"slope = -1\n", "a.toml:3:9"},
       {"[callbacks.log]\nevery = '20'\n", "a.toml:4:9: callbacks.log.every"},
       {"[callbacks.log]\nevery = 20\n", "takes a string"},
       {"[callbacks.\"../best\"]\ntype = 'keep_best'\nmetric = 'loss'\n", "'../best'"},
       {"[data]\nstages = 3\n", "[[data.stages]]"},
       {"[data]\nsources = 3\n", "[[data.sources]]"}});
  EXPECT_THAT(complaint("train = 3\n" + kModel), HasSubstr("a table"));
  EXPECT_THAT(complaint("[train]\n"), HasSubstr("[model] needs a type"));
  EXPECT_THAT(complaint("[callbacks]\nlog = 3\n" + kModel), HasSubstr("[callbacks.log]"));
}

const std::string kGroups =
    "[[optimizer.groups]]\nmatch = '*.bias'\nfrozen = true\n"
    "[[optimizer.groups]]\nmatch = 'line.*'\nlr_factor = 0.5\n";

TEST(Recipe, KeepsOrderOfParameterGroups) {
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

TEST(Recipe, RejectsIncompatibleOptions) {
  const std::string adamw = "[optimizer]\ntype = 'adamw'\n";
  expect_complaints(
      {{"[[optimizer.groups]]\nlr_factor = 2\n", "match is required"},
       {"[[optimizer.groups]]\nmatch = '*'\nlr = 2\n", "unknown key 'lr'"},
       {"[optimizer]\ngroups = 2\n", "[[optimizer.groups]]"},
       {"[optimizer]\ntype = 'adam'\n", "sgd | adamw"},
       {adamw + "nesterov = true\n", "a.toml:5:12: nesterov "},
       {adamw + "momentum = 1\n", "momentum must be below 1"},
       {adamw + "trust = 'lars'\n", "trust requires type = \"sgd\""},
       {"[optimizer]\ntrust = 'larc'\nclip_value = 1\n",
        "clip_value cannot be combined with trust"},
       {"[optimizer]\naccumulate = 0\n", "accumulate"},
       {"[train]\nloss_scale = 1024\nprecision = 'bf16'\n",
        "a.toml:4:14: loss_scale requires precision = \"fp16\""},
       {"[train]\nloss_scale = 1024\nprecision = 'fp16'\n", ""},
       {"[schedule]\nmilestones = [8, 12]\n", "a.toml:4:14: milestones contains 12, "}});
}

TEST(Recipe, RejectsOptionsWithoutEffect) {
  const std::string cosine = "[schedule]\ntype = 'cosine'\n", optimizer = "[optimizer]\n";
  const auto nothing = [](const std::string& key) { return key + " changes nothing "; };
  expect_complaints(
      {{cosine + "milestones = [6, 8]\n",
        nothing("a.toml:5:14: milestones") + "with type = \"cosine\""},
       {cosine + "gamma = 0.5\n", nothing("gamma") + "with type = \"cosine\""},
       {cosine + "power = 2\n", nothing("power") + "with type = \"cosine\""},
       {cosine + "milestones = [8, 11.0]\npower = 0.9\n", ""},  // the default values
       {"[schedule]\nwarmup = '0 steps'\nwarmup_factor = 0.5\n",
        nothing("warmup_factor") + "without a"},
       {optimizer + "beta2 = 0.9\n", nothing("beta2") + "with type = \"sgd\""},
       {optimizer + "trust_coefficient = 1\n",
        nothing("trust_coefficient") + "with trust = \"none\""},
       {optimizer + "nesterov = true\nmomentum = 0\n", "nesterov has no effect with momentum = 0"},
       {"[[optimizer.groups]]\nmatch = '*'\nfrozen = true\nlr_factor = 2\n",
        nothing("lr_factor") + "with frozen = true"},
       {"[data]\non_error = 'fail'\nmax_skipped = 0.5\n", nothing("max_skipped") + "with on_error"},
       {"[data]\nshape_buckets = 4\naspect_grouping = false\n",
        nothing("aspect_grouping") + "with shape"},
       {"[data]\nflip = 0.1\nstages = [{ type = 'read' }, { type = 'decode' }, { type = "
        "'group_by_aspect_ratio' }, { type = 'pad' }]\n",
        nothing("a.toml:4:8: flip") + "because no stage of [[data.stages]] uses it"}});
}

TEST(Recipe, SupportsNamedAndDisabledCallbacks) {
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
}  // namespace millrace::testing
