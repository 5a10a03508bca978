// The same config gives the same bytes, whatever the number of threads that feed it.
#include <map>

#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Determinism = Training;

/// The detections of every evaluation of the runs in `output`, joined.
std::string detections_of(const fs::path& output) {
  std::map<fs::path, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(output))
    if (entry.path().parent_path().filename() == "detections")
      files[entry.path()] = read_text(entry.path());
  std::string all;
  for (const auto& [file, text] : files) all += text;
  return all;
}

TEST_F(Determinism, FiftyStepsWithOtherFlowThreadsGiveTheSameWeightsAndDetections) {
  const auto data = make_data();
  std::vector<std::string> weights, detections;
  for (const auto* threads : {"1", "4", "4"}) {
    const auto output = in_folder("runs-" + std::to_string(weights.size()));
    const auto run = trainer(
        on(data, {"run", "--output", output.string()},
           {"train.max_steps=50", std::string("data.threads=") + threads, "schedule.warmup_steps=2",
            "data.short_side=64", "data.max_side=96", "callbacks.evaluate.every=\"25 epochs\"",
            "callbacks.checkpoint.every=\"25 epochs\"", "callbacks.pictures.enabled=false"}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    weights.push_back(read_text(last_checkpoint(output) / "model.safetensors"));
    detections.push_back(detections_of(output));
  }
  ASSERT_FALSE(weights[0].empty());
  ASSERT_FALSE(detections[0].empty());
  EXPECT_TRUE(weights[0] == weights[1]);
  EXPECT_TRUE(weights[0] == weights[2]);
  EXPECT_TRUE(detections[0] == detections[1]);
}

TEST_F(Determinism, EvaluationBesideTheTrainingChangesNoWeightsAndFindsTheSame) {
  const auto data = make_data();
  std::string weights, detections;
  for (const std::string mode : {"inline", "score_in_background", "background"}) {
    const auto output = in_folder("runs-" + mode);
    const auto run = trainer(
        on(data, {"run", "--output", output.string()},
           {"train.max_steps=6", "schedule.warmup_steps=2", "callbacks.pictures.enabled=false",
            "callbacks.evaluate.mode=" + mode, "callbacks.evaluate.every=\"2 steps\""}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    if (mode == "inline") {
      weights = read_text(last_checkpoint(output) / "model.safetensors");
      detections = detections_of(output);
      ASSERT_FALSE(weights.empty());
      ASSERT_FALSE(detections.empty());
    }
    EXPECT_TRUE(read_text(last_checkpoint(output) / "model.safetensors") == weights) << mode;
    EXPECT_TRUE(detections_of(output) == detections) << mode;
  }
}

TEST_F(Determinism, ReachedTargetsEndARunWithACheckpointAndExitCode0) {
  const auto data = make_data();
  const auto with = [&](const std::string& targets) {
    return trainer(on(
        data, {"run", "--output", in_folder("runs").string()},
        {"train.max_steps=6", "callbacks.pictures.enabled=false",
         "callbacks.evaluate.every=\"2 steps\"", "callbacks.evaluate.targets={" + targets + "}"}));
  };
  const auto run = with("\"bbox/AP\" = 0.0, \"segm/AP\" = 0.0");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, ::testing::HasSubstr("stopped by the targets that it reached (bbox/AP 0."));
  EXPECT_EQ(last_checkpoint(in_folder("runs")).filename(), "step-000002");
  expect_error(with("\"bbox/AQ\" = 0.1"), 2, "did you mean 'bbox/AP'?");
}

}  // namespace
}  // namespace millrace::testing
