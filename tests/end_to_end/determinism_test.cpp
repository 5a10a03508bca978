// The same config gives the same bytes, whatever the number of threads that feed it.
#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Determinism = Training;

TEST_F(Determinism, ARerunWithOtherFlowThreadsGivesTheSameWeightsAndDetections) {
  const auto data = make_data();
  std::vector<std::string> weights, detections;
  for (const auto* threads : {"1", "2", "2"}) {
    const auto output = in_folder("runs-" + std::to_string(weights.size()));
    const auto run = trainer(on(
        data, {"run", "--output", output.string()},
        {"train.max_steps=6", std::string("data.threads=") + threads, "schedule.warmup_steps=2"}));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    weights.push_back(read_text(last_checkpoint(output) / "model.safetensors"));
    detections.emplace_back();
    for (const auto& entry : fs::recursive_directory_iterator(output))
      if (entry.path().extension() == ".json" &&
          entry.path().parent_path().filename() == "detections")
        detections.back() += read_text(entry.path());
  }
  ASSERT_FALSE(weights[0].empty());
  ASSERT_FALSE(detections[0].empty());
  EXPECT_TRUE(weights[0] == weights[1]);
  EXPECT_TRUE(weights[0] == weights[2]);
  EXPECT_TRUE(detections[0] == detections[1]);
}

}  // namespace
}  // namespace millrace::testing
