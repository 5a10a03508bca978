// Configurations: every one in the repository resolves, and a wrong one says where it is wrong.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using Configs = Trainer;

TEST_F(Configs, EveryOneOfTheRepositoryResolves) {
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator("configs")) {
    const auto& file = entry.path();
    if (file.extension() != ".toml" || file.parent_path().filename() == "base") continue;
    const auto resolved = trainer({"config", file.string()});
    EXPECT_EQ(resolved.exit_code, 0) << file << ": " << resolved.err;
    ++seen;
  }
  EXPECT_GE(seen, 12);
}

TEST_F(Configs, TheResolvedFileResolvesToItself) {
  const auto once = trainer({"config", "configs/coco/aws_32x4.toml"});
  write_text(in_folder("once.toml"), once.out);
  const auto twice = trainer({"config", in_folder("once.toml").string()});
  EXPECT_EQ(twice.exit_code, 0) << twice.err;
  const auto values = [](const std::string& toml) {
    std::istringstream lines(toml);
    std::string kept;
    for (std::string line; std::getline(lines, line);)
      kept += line.substr(0, line.find("  # ")) + "\n";
    return kept;
  };
  EXPECT_EQ(values(once.out), values(twice.out));
}

TEST_F(Configs, EachValueSaysWhereItCameFrom) {
  const auto resolved =
      trainer({"config", "configs/coco/mask_rcnn_R50_FPN_3x.toml", "--set", "train.seed=7"});
  EXPECT_THAT(resolved.out, HasSubstr("# configs/coco/mask_rcnn_R50_FPN_3x.toml:"));
  EXPECT_THAT(resolved.out, HasSubstr("# configs/coco/base/detectron2.toml:"));
  EXPECT_THAT(resolved.out, HasSubstr("# default"));
  EXPECT_THAT(resolved.out, HasSubstr("# --set train.seed"));
}

/// A file that inherits configs/maskrcnn.toml in its first line.
class WrongConfig : public Trainer {
 protected:
  void expect_wrong(const std::string& toml, const std::string& where, const std::string& what) {
    const auto base = fs::absolute("configs/maskrcnn.toml").string();
    write_text(file_, "base = \"" + base + "\"\n" + toml);
    const auto outcome = trainer({"config", file_.string()});
    expect_error(outcome, 2, file_.string() + where);
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }

 private:
  fs::path file_ = in_folder("wrong.toml");
};

TEST_F(WrongConfig, AnUnknownKeyIsPlacedAndTheNearestNamed) {
  expect_wrong("[train]\nepochs = 2\n  sead = 3\n", ":4:10: ", "did you mean 'seed'?");
  expect_wrong("[model]\nbackbon = 'resnet18'\n", ":3:11: ", "did you mean 'backbone'?");
  expect_wrong("[callbacks.log]\nevry = '1 step'\n", ":3:8: ", "did you mean 'every'?");
}

TEST_F(WrongConfig, AWrongTypeIsPlaced) {
  expect_wrong("[train]\nseed = \"one\"\n", ":3:8: ", "seed takes an integer, not a string");
}

TEST_F(WrongConfig, AValueOutOfRangeIsPlaced) {
  expect_wrong("[data]\n\nflip = 1.5\n", ":4:8: ", "out of range (0 .. 1)");
}

TEST_F(Configs, BrokenTomlIsPlaced) {
  const auto file = in_folder("bad.toml");
  write_text(file, "[train\nseed = 1\n");
  expect_error(trainer({"config", file.string()}), 2, file.string() + ":1:");
}

TEST_F(Configs, AMissingFileIsNamed) {
  expect_error(trainer({"config", "nosuch.toml"}), 2, "nosuch.toml");
}

TEST_F(Configs, AnUnknownDetectorOrCallbackIsWrongUsage) {
  expect_error(trainer({"config", "configs/maskrcnn.toml", "--set", "model.name=maskrcn"}), 2,
               "maskrcnn");
  expect_error(
      trainer({"config", "configs/maskrcnn.toml", "--set", "callbacks.evalute.every=\"1 epoch\""}),
      2, "evaluate");
}

}  // namespace
}  // namespace millrace::testing
