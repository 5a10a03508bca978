// The sample data set is made by the command that trains, in the folder that the configuration's
// own file names for it, and nowhere else: a mistyped folder is told, not filled.
#include <algorithm>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FirstUse : public Trainer {
 protected:
  fs::path root_ = in_folder("made"), typed_ = in_folder("mistyped");
  fs::path config_ =
      write("own.toml", "base = \"" + fs::absolute("configs/maskrcnn.toml").string() +
                            "\"\n[data]\nroot = \"" + root_.string() +
                            "\"\nshort_side = 96\nmax_side = 160\n"
                            "[data.sample]\ntrain = 8\nval = 4\n"
                            "[model]\nbackbone.width = 16\n");

  fs::path write(const std::string& name, const std::string& text) const {
    write_text(in_folder(name), text);
    return in_folder(name);
  }

  std::vector<std::string> command(std::vector<std::string> words, const fs::path& config,
                                   const std::vector<std::string>& overrides = {}) const {
    words.push_back(config.string());
    for (const auto& one : overrides) words.insert(words.end(), {"--set", one});
    return words;
  }
  std::vector<std::string> run_of(const fs::path& config,
                                  std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.end(),
                     {"train.max_steps=1", "callbacks.evaluate.enabled=false",
                      "callbacks.pictures.enabled=false", "callbacks.checkpoint.enabled=false"});
    return command({"run", "--output", in_folder("runs").string()}, config, overrides);
  }
};

TEST_F(FirstUse, RunMakesTheSetThatItsFileNames) {
  const auto outcome = trainer(run_of(config_));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("making the sample data set in " + root_.string() + " (8 + 4"));
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("training data: 8 images, "), HasSubstr("objects of each class:\n")));
  EXPECT_EQ(read_json(root_ / "annotations/instances_train2017.json")["images"].size(), 8U);
}

TEST_F(FirstUse, OtherCommandsSayHowToMakeIt) {
  const std::vector<std::vector<std::string>> commands = {
      {"doctor"},
      {"bench", "dataflow"},
      {"bench", "model"},
      {"pack", "--out", in_folder("packed").string()},
      {"serve", "--bind", "ipc://" + in_folder("socket").string()}};
  for (const auto& words : commands) {
    const auto outcome = trainer(command(words, config_));
    expect_error(outcome, 2, "no data folder '" + root_.string() + "'");
    EXPECT_THAT(outcome.err, HasSubstr("`trainer sample --out " + root_.string() +
                                       " --train 8 --val 4 --seed 1`"));
    EXPECT_FALSE(fs::exists(root_)) << words[0];
  }
  const auto weights = write("w.safetensors", "no weights");
  const auto outcome = trainer(command({"eval", "--weights", weights.string()}, config_));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_FALSE(fs::exists(root_));
}

TEST_F(FirstUse, AMistypedFolderIsToldAndNotFilled) {
  const auto typed = "data.root=\"" + typed_.string() + "\"";
  const auto heir =
      write("heir.toml", "base = \"own.toml\"\n[data]\nroot = \"" + typed_.string() + "\"\n");
  for (const auto& words :
       {run_of(config_, {typed}), run_of(heir), run_of(config_, {typed, "data.sample.train=4"}),
        command({"bench", "dataflow"}, heir)}) {
    expect_error(trainer(words), 2, "no data folder '" + typed_.string() + "'");
    EXPECT_FALSE(fs::exists(typed_));
  }
  // Nor by whoever starts from the complete configuration.
  const auto complete = trainer(command({"config"}, config_, {typed}));
  ASSERT_EQ(complete.exit_code, 0) << complete.err;
  const auto copy = write("complete.toml", complete.out);
  expect_error(trainer(run_of(copy)), 2, "no data folder '" + typed_.string() + "'");
  EXPECT_FALSE(fs::exists(typed_));
}

TEST_F(FirstUse, NothingIsMadeForOtherSources) {
  const auto fake =
      write("fake.toml",
            "base = \"own.toml\"\n[data]\nval = \"\"\nclasses = [\"a\", \"b\"]\n"
            "[[data.sources]]\ntype = \"fake\"\ncount = 8\nwidth = 96\nheight = 96\n");
  const auto outcome = trainer(run_of(fake));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(fs::exists(root_));
}

}  // namespace
}  // namespace millrace::testing
