// Checks that a configuration produces the same bytes for any number of data threads.
#include <map>

#include "tests/end_to_end/training.h"

namespace millrace::testing {
namespace {

using Determinism = Training;

/// Returns the detections of all evaluations of the runs in `output`, concatenated.
std::string detections_of(const fs::path& output) {
  std::map<fs::path, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(output))
    if (entry.path().parent_path().filename() == "detections")
      files[entry.path()] = read_text(entry.path());
  std::string all;
  for (const auto& [file, text] : files) all += text;
  return all;
}

/// The final weights and all detections of a training run.
struct Bytes {
  explicit Bytes(const fs::path& output)
      : weights(last_weights(output)), detections(detections_of(output)) {}
  bool operator==(const Bytes&) const = default;
  std::string weights, detections;
};

TEST_F(Determinism, IgnoresThreadCountAndEvaluationMode) {
  const auto data = make_data();
  const auto train = [&](const std::string& name, const Words& settings) {
    const auto output = in_folder(name);
    successful(trainer(
        on(data, {"run", "--out", output},
           Words{"schedule.warmup=2 steps", "callbacks.pictures.enabled=false"} + settings)));
    const Bytes bytes(output);
    EXPECT_FALSE(bytes.weights.empty() || bytes.detections.empty());
    return bytes;
  };
  const auto fifty_steps = [&](const std::string& name, const std::string& threads) {
    return train(name, {"train.max_steps=50", "data.threads=" + threads, "data.short_side=64",
                        "data.max_side=96", "callbacks.evaluate.every='25 epochs'",
                        "callbacks.checkpoint.every='25 epochs'"});
  };
  const auto one = fifty_steps("one", "1");
  EXPECT_TRUE(fifty_steps("four", "4") == one);
  EXPECT_TRUE(fifty_steps("again", "4") == one);

  const auto six_steps = [&](const std::string& mode) {
    return train(mode, {"train.max_steps=6", "callbacks.evaluate.mode=" + mode,
                        "callbacks.evaluate.every='2 steps'"});
  };
  const auto inline_mode = six_steps("inline");
  for (const auto* mode : {"score_in_background", "background"})
    EXPECT_TRUE(six_steps(mode) == inline_mode) << mode;
}

TEST_F(Determinism, StopsRunWhenTargetsAreReached) {
  const auto data = make_data();
  const auto with = [&](const std::string& targets) {
    return trainer(on(
        data, {"run", "--out", in_folder("runs")},
        {"train.max_steps=6", "callbacks.pictures.enabled=false",
         "callbacks.evaluate.every=\"2 steps\"", "callbacks.evaluate.targets={" + targets + "}"}));
  };
  const auto run = successful(with("\"bbox/AP\" = 0.0, \"segm/AP\" = 0.0"));
  EXPECT_THAT(run.err, ContainsRegex("targets[^\n]*bbox/AP[^\n]* 0\\."));
  EXPECT_EQ(last_checkpoint(in_folder("runs")).filename(), "step-000002");
  expect_error(with("\"bbox/AQ\" = 0.1"), 2, "'bbox/AP'");
}

}  // namespace
}  // namespace millrace::testing
