#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "millrace/models/weights/weights.h"
#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

at::Tensor weight(const NamedTensors& tensors) {
  return std::ranges::find(tensors, "line.weight", &NamedTensors::value_type::first)->second;
}

/// Trains with averaging; returns the weights before the first step and after each step.
std::vector<at::Tensor> trained(const std::filesystem::path& folder, const std::string& toml) {
  std::vector<at::Tensor> weights;
  const auto note = [&](const TrainState& s) {
    weights.push_back(s.model.parameters().find("line.weight")->value.detach().clone());
  };
  Training{.folder = folder,
           .declared = {{"average_weights", toml}, {"checkpoint", ""}},
           .before_step = note}();
  weights.push_back(weight(newest_checkpoint(folder / "checkpoints")->model));
  return weights;
}

TEST(AverageWeights, MatchFormula) {
  for (const bool warm_up : {false, true}) {
    const Scratch scratch;
    const auto weights = trained(
        scratch / "run", "decay = 0.7\nwarm_up = " + std::string(warm_up ? "true" : "false"));
    auto average = weights[0].to(at::kDouble);
    for (std::size_t step = 1; step < weights.size(); ++step) {
      const auto n = static_cast<double>(step);
      const auto decay = warm_up ? std::min(0.7, (1 + n) / (10 + n)) : 0.7;
      average = decay * average + (1 - decay) * weights[step].to(at::kDouble);
    }
    const auto kept = newest_checkpoint(scratch / "run" / "checkpoints")->callback_tensors;
    EXPECT_TRUE(
        at::allclose(weight(kept.at("average_weights")).to(at::kDouble), average, 1e-6, 1e-7));
  }
}

TEST(AverageWeights, RampUpDecay) {
  const Scratch scratch;
  const auto weights = trained(scratch / "run", "decay = 0.9\nramp = 3");
  auto average = weights[0].to(at::kDouble);
  for (std::size_t step = 1; step < weights.size(); ++step) {
    const auto decay = 0.9 * (1 - std::exp(-static_cast<double>(step) / 3));
    average = decay * average + (1 - decay) * weights[step].to(at::kDouble);
  }
  const auto kept = newest_checkpoint(scratch / "run" / "checkpoints")->callback_tensors;
  EXPECT_TRUE(
      at::allclose(weight(kept.at("average_weights")).to(at::kDouble), average, 1e-6, 1e-7));
}

TEST(AverageWeights, AreLoadableAsWeights) {
  const Scratch scratch;
  trained(scratch / "run", "decay = 0.9");
  LineDetector model;
  const auto file =
      scratch / "run" / "checkpoints" / "latest" / "callback.average_weights.safetensors";
  const auto report = load_weights(model.parameters(), file);
  EXPECT_EQ(report.loaded, 2U);
  EXPECT_TRUE(report.not_loaded().empty());
}

/// Detects boxes that are shifted by the sum of the weights.
struct Judge final : LineDetector {
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    const auto off = parameters().find("line.weight")->value.sum().item<float>();
    std::vector<std::vector<DetectedObject>> found;
    for (std::size_t i = 0; i < batch.size(); ++i)
      found.push_back({{.box = {10 + off, 10, 40 + off, 40}, .label = 0, .score = 0.9F}});
    return found;
  }
};

TEST(AverageWeights, AreEvaluatedInAllModes) {
  for (const auto* mode : {"inline", "score_in_background", "background"}) {
    const Scratch scratch;
    const auto average_mode = "weights = 'average_weights'\nmode = '" + std::string(mode) + "'\n";
    Training run{.folder = scratch / "run",
                 .declared = {{"log", "every = '5 steps'"},
                              {"checkpoint", "every = '5 steps'\nkeep = 0"},
                              {"average_weights", "decay = 0.9\nwarm_up = false"},
                              {"evaluate", ""},
                              {"averaged", "type = 'evaluate'\n" + average_mode},
                              {"keep_best", "metric = 'average_weights/bbox/AP'"}},
                 .make_model = [] { return std::make_unique<Judge>(); }};
    run();
    std::map<int, double> said;
    for (const auto& line : metrics(scratch / "run"))
      if (line.contains("average_weights/bbox/AP"))
        said[line.at("step")] = line.at("average_weights/bbox/AP");
    const auto score = [&](int step, const char* file) {
      Judge judge;
      load_weights(judge.parameters(), checkpoint_of(scratch / "run" / "checkpoints", step) / file);
      return evaluate_detector(judge, fake_validation())->boxes.stats[0];
    };
    // The callback's scores equal the scores of an evaluation of the saved weights.
    const auto* const averages = "callback.average_weights.safetensors";
    EXPECT_THAT(said, ElementsAre(Pair(5, score(5, averages)), Pair(10, score(10, averages)),
                                  Pair(15, score(15, averages))))
        << mode;
    EXPECT_NE(said[15], score(15, "model.safetensors"));
    for (const auto* file : {"step-000005.json", "step-000010.json", "step-000015.json"})
      EXPECT_TRUE(
          std::filesystem::exists(scratch / "run" / "detections" / "average_weights" / file));
  }
}

TEST(AverageWeights, AreRejectedIfCallbackIsMissing) {
  const Scratch scratch;
  const Training run{
      .folder = scratch / "run",
      .declared = {{"average_weights", ""}, {"evaluate", "weights = 'averaged_weights'"}}};
  EXPECT_THAT([&] { run(); },
              ThrowsMessage<ConfigError>(HasSubstr("did you mean 'average_weights'")));
}

}  // namespace
}  // namespace millrace::testing
