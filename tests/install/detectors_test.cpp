// The detectors of plugins/, built by their own CMakeLists from the installed package alone, train
// like the installed plug-ins.
#include "tests/install/installed.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

class Detectors : public Installed, public ::testing::WithParamInterface<std::string> {
 protected:
  fs::path data_ = make_data();

  /// Returns the losses of four steps with the plug-in.
  std::vector<nlohmann::json> losses(const std::string& plugin, const std::string& output) const {
    const auto config = prefix() / "share/millrace/configs" / (GetParam() + ".toml");
    successful(installed(with_settings(
        {"run", config, "--out", in_folder(output)},
        kTrainOnly + Words{setting("data.root", data_), "plugins=['" + plugin + "']",
                           "data.batch_size=2", "train.max_steps=4", "callbacks.log.every=1 steps",
                           "callbacks.checkpoint.enabled=false"})));
    std::vector<nlohmann::json> steps;
    for (auto line : json_lines(in_folder(output) / (GetParam() + "-1") / "metrics.jsonl")) {
      nlohmann::json step;
      for (const auto& [name, value] : line.items())
        if (name.starts_with("loss")) step[name] = value;
      if (!step.empty()) steps.push_back(std::move(step));
    }
    return steps;
  }
};

TEST_P(Detectors, TrainTheSameIfBuiltAlone) {
  const auto name = GetParam();
  const auto done = build_copy(fs::path("plugins") / name);
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  const auto shipped = losses(name + ".so", "shipped");
  EXPECT_THAT(shipped, Not(IsEmpty()));
  EXPECT_EQ(losses((built(name) / (name + ".so")).string(), "built"), shipped);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Detectors, ::testing::Values("rtdetr", "yolox"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace millrace::testing
