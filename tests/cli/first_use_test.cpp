// `trainer run` generates the sample data set, but only in the folder that the configuration file
// itself names; a mistyped folder is an error.
#include <algorithm>

#include "millrace/base/config.h"
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

class FirstUse : public Trainer {
 protected:
  fs::path root_ = in_folder("made"), typed_ = in_folder("mistyped");
  fs::path config_ = write_heir(in_folder("own.toml"), "[data]\nroot = '" + root_.string() +
                                                           "'\nshort_side = 96\nmax_side = 160\n"
                                                           "[data.sample]\ntrain = 8\nval = 4\n"
                                                           "[model]\nbackbone.width = 16\n");

  fs::path write(const std::string& name, const std::string& text) const {
    write_text(in_folder(name), text);
    return in_folder(name);
  }

  static Words command(const Words& words, const fs::path& config, const Words& overrides = {}) {
    return with_settings(words + Words{config}, overrides);
  }
  Words run_of(const fs::path& config, const Words& overrides = {}) const {
    return command(
        {"run", "--out", in_folder("runs")}, config,
        overrides + kTrainOnly + Words{"train.max_steps=1", "callbacks.checkpoint.enabled=false"});
  }
};

TEST_F(FirstUse, RunMakesSampleDataSet) {
  const auto outcome = successful(trainer(run_of(config_)));
  EXPECT_THAT(outcome.err, HasSubstr(root_.string() + " (8 + 4"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("info next: "), Not(HasSubstr("trainer predict"))))
      << "no model was saved";
  EXPECT_THAT(outcome.err, HasSubstr("8 images"));
  EXPECT_EQ(read_json(root_ / "annotations/instances_train2017.json")["images"].size(), 8U);
}

TEST_F(FirstUse, WarnsAboutDifferentSampleSize) {
  successful(trainer(run_of(config_)));
  EXPECT_THAT(successful(trainer(run_of(config_))).err, Not(HasSubstr("[data.sample]")));
  EXPECT_THAT(successful(trainer(run_of(config_, {"data.sample.train=6"}))).err,
              AllOf(HasSubstr("8 + 4"), HasSubstr("6 + 4"), HasSubstr("[data.sample]")));
}

TEST_F(FirstUse, OtherCommandsSuggestSampleCommand) {
  const std::vector<Words> commands = {
      {"doctor"},
      {"bench", "dataflow"},
      {"bench", "model"},
      {"pack", "--out", in_folder("packed")},
      {"serve", "--bind", "ipc://" + in_folder("socket").string()}};
  for (const auto& words : commands) {
    const auto outcome = trainer(command(words, config_));
    expect_error(outcome, 2, root_.string());
    EXPECT_THAT(outcome.err, HasSubstr("trainer sample --out " + root_.string() +
                                       " --train 8 --val 4 --seed 1"));
    EXPECT_FALSE(fs::exists(root_)) << words[0];
  }
  const auto weights = write("w.safetensors", "no weights");
  const auto outcome = trainer(command({"eval", "--weights", weights}, config_));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_FALSE(fs::exists(root_));
}

TEST_F(FirstUse, RejectsMistypedFolder) {
  const auto typed = setting("data.root", typed_);
  const auto heir =
      write("heir.toml", "base = \"own.toml\"\n[data]\nroot = \"" + typed_.string() + "\"\n");
  for (const auto& words :
       {run_of(config_, {typed}), run_of(heir), run_of(config_, {typed, "data.sample.train=4"}),
        command({"bench", "dataflow"}, heir)}) {
    expect_error(trainer(words), 2, typed_.string());
    EXPECT_FALSE(fs::exists(typed_));
  }
  // A copy of the complete configuration does not generate the folder either.
  const auto complete = successful(trainer(command({"config"}, config_, {typed})));
  const auto copy = write("complete.toml", complete.out);
  expect_error(trainer(run_of(copy)), 2, typed_.string());
  EXPECT_FALSE(fs::exists(typed_));
}

/// Returns the value of data.root in TOML text.
std::string root_in(const std::string& toml) {
  return std::get<std::string>(parse_config(toml, "text").find_path("data.root")->data);
}

TEST_F(FirstUse, ResolvesRootRelativeToItsFile) {
  fs::create_directory(in_folder("configs"));
  const auto file =
      write("configs/relative.toml", "base = '../own.toml'\n[data]\nroot = '../near'\n");
  const auto near = in_folder("near").string();
  EXPECT_EQ(root_in(successful(trainer(command({"config"}, file))).out), near);
  expect_error(trainer(command({"bench", "dataflow"}, file)), 2, near);
  const auto typed = successful(trainer(command({"config"}, file, {"data.root=near"}))).out;
  EXPECT_EQ(root_in(typed), (fs::current_path() / "near").string());
  expect_error(trainer(command({"config"}, file, {"data.root="})), 2, "--set data.root");
}

TEST_F(FirstUse, ConfigurationCopyWorksFromAnyFolder) {
  fs::create_directory(in_folder("configs"));
  const auto file =
      write("configs/relative.toml",
            "base = '../own.toml'\n[data]\nroot = '../near'\n[data.sample]\ntrain = 8\n");
  successful(trainer(run_of(file)));
  EXPECT_TRUE(fs::is_directory(in_folder("near/train2017")));
  const auto copy = in_folder("runs/relative-1/config.toml");
  EXPECT_EQ(root_in(read_text(copy)), in_folder("near").string());
  const auto seen =
      run("/bin/sh", {"-c", "cd / && exec" + quoted({MILLRACE_TRAINER, "doctor", copy})});
  EXPECT_THAT(seen.err, Not(HasSubstr("trainer: error: ")));
}

TEST_F(FirstUse, MakesNoSampleIfSourcesAreDeclared) {
  const auto fake =
      write("fake.toml",
            "base = \"own.toml\"\n[data]\nval = \"\"\nclasses = [\"a\", \"b\"]\n"
            "[[data.sources]]\ntype = \"fake\"\ncount = 8\nwidth = 96\nheight = 96\n");
  successful(trainer(run_of(fake)));
  EXPECT_FALSE(fs::exists(root_));
}

}  // namespace
}  // namespace millrace::testing
