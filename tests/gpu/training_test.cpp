// `trainer` runs on the device: two runs have the same bytes, results are close to the CPU's, all
// precisions work, and a run can be resumed on a different device.
#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "tests/gpu/on_device.h"
#include "tests/gpu/programs.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

/// Returns the last value of a metric; NaN if not found.
double last_of(const std::vector<Json>& lines, const std::string& metric) {
  double value = std::nan("");
  for (const auto& line : lines)
    if (const auto found = line.find(metric); found != line.end() && found->is_number())
      value = found->get<double>();
  return value;
}

class TrainingOnDevice : public Trainer {
 protected:
  void SetUp() override {
    if (!tested().missing.empty()) GTEST_SKIP() << tested().missing;
  }

  /// Returns a `trainer run` command for the sample data set.
  static Words sample_run(const Words& more, const Words& settings) {
    return with_settings(Words{"run", shipped("configs/maskrcnn.toml")} + more,
                         Words{sample_data()} + as_small_as_asked() + settings);
  }

  /// Trains into the folder `name`, on the device or on the CPU. Returns the metrics of the run.
  std::vector<Json> train(const std::string& name, bool on_device, const Words& settings,
                          const Words& more = {}) const {
    const auto out = in_folder(name);
    successful(trainer(sample_run(Words{"--out", out} + more,
                                  Words{"callbacks.pictures.enabled=false"} + settings +
                                      (on_device ? on_tested_device() : Words{}))));
    return json_lines(out / "maskrcnn-1/metrics.jsonl");
  }

  const bool small_ = tested().small;
};

struct Way {
  std::string name;
  Words settings;
  friend void PrintTo(const Way& one, std::ostream* out) { *out << one.name; }
};

class TrainingTwice : public TrainingOnDevice, public ::testing::WithParamInterface<Way> {};

TEST_P(TrainingTwice, ProducesSameBytes) {
  const auto end = trainer(sample_run({"--verify-determinism", small_ ? "1" : "5"},
                                      on_tested_device() + GetParam().settings));
  EXPECT_EQ(end.exit_code, 0) << end.out << end.err;
}

INSTANTIATE_TEST_SUITE_P(
    Ways, TrainingTwice,
    ::testing::Values(Way{"fp32", {}},
                      // batch norm would need the statistics of all micro-batches
                      Way{"micro_batches",
                          {"train.micro_batch=1", "train.threads=1", "data.test_batch_size=1",
                           "model.backbone.norm='gn'", "model.fpn.norm='gn'"}},
                      Way{"bf16", {"train.precision='bf16'"}}),
    [](const auto& one) { return one.param.name; });

TEST_F(TrainingOnDevice, MatchesCpuTraining) {
  const int steps = small_ ? 2 : 200;
  const Words settings = {fmt::format("train.max_steps={}", steps),
                          fmt::format("callbacks.evaluate.every={} steps", steps),
                          fmt::format("callbacks.log.every={} steps", small_ ? 1 : 20),
                          fmt::format("callbacks.throughput.every={} steps", small_ ? 1 : 20),
                          "callbacks.checkpoint.enabled=false"};
  const auto there = train("device", true, settings), here = train("cpu", false, settings);
  EXPECT_NEAR(last_of(there, "loss"), last_of(here, "loss"), 0.1 * last_of(here, "loss"));
  for (const auto* metric : {"bbox/AP", "segm/AP"})
    EXPECT_NEAR(last_of(there, metric), last_of(here, metric), 0.05) << metric;
  EXPECT_GT(last_of(there, "time/images_per_s"), 0);
}

TEST_F(TrainingOnDevice, FindsLossScaleInFp16) {
  const auto lines =
      train("fp16", true,
            {fmt::format("train.max_steps={}", small_ ? 2 : 150), "train.precision='fp16'",
             fmt::format("callbacks.log.every={} steps", small_ ? 1 : 10),
             "callbacks.evaluate.enabled=false", "callbacks.checkpoint.enabled=false"});
  EXPECT_GE(last_of(lines, "loss_scale"), 1);
  if (small_) return;
  for (const auto& line : lines)
    if (line.contains("loss") && line.at("loss").is_number()) {
      EXPECT_LT(last_of(lines, "loss"), line.at("loss").get<double>());
      break;
    }
}

TEST_F(TrainingOnDevice, ResumesCpuTraining) {
  const int each = small_ ? 1 : 20;
  const auto up_to = [&](int parts) {
    return Words{fmt::format("train.max_steps={}", parts * each),
                 fmt::format("callbacks.checkpoint.every={} steps", each),
                 fmt::format("callbacks.log.every={} steps", each),
                 "callbacks.evaluate.enabled=false"};
  };
  const auto whole = train("whole", false, up_to(3));
  train("mixed", false, up_to(1));
  train("mixed", true, up_to(2), {"--resume"});
  const auto mixed = train("mixed", false, up_to(3), {"--resume"});
  EXPECT_EQ(last_of(mixed, "step"), 3 * each);
  EXPECT_NEAR(last_of(mixed, "loss"), last_of(whole, "loss"), 0.1 * last_of(whole, "loss"));
}

class Precision : public TrainingOnDevice, public ::testing::WithParamInterface<const char*> {};

/// R50-FPN at 800/1333, or a narrow network with --small.
TEST_P(Precision, TrainsAndReportsPeakMemory) {
  if (GetParam() == std::string("tf32") && !tested().on_cuda())
    GTEST_SKIP() << "tf32 requires a GPU";
  const int width = small_ ? 160 : 1333, height = small_ ? 96 : 800;
  const auto file = in_folder("benchmark.toml");
  write_text(
      file, fmt::format("base = '{}'\n[[data.sources]]\ntype = 'fake'\ncount = 8\n"
                        "width = {}\nheight = {}\n",
                        shipped("configs/coco/mask_rcnn_R50_FPN_1x.toml").string(), width, height));
  const auto settings = on_tested_device() + as_small_as_asked() +
                        Words{"data.classes=['a','b','c']",
                              fmt::format("data.short_side={}", height),
                              fmt::format("data.max_side={}", width),
                              "data.batch_size=1",
                              "model.weights=''",
                              "optimizer.lr=1e-9",
                              fmt::format("train.precision='{}'", GetParam())} +
                        (small_ ? Words{"model.backbone.type='resnet18'"} : Words{});
  const auto end = successful(trainer(
      with_settings({"bench", "model", file, "--json", "--steps", small_ ? "1" : "10"}, settings)));
  const auto result = end.json();
  EXPECT_GT(result.at("images_per_s").get<double>(), 0);
  EXPECT_TRUE(std::isfinite(result.at("first").at("loss").get<double>()));
  if (tested().on_cuda()) {
    EXPECT_GT(result.at("peak_device_bytes").get<double>(), 0);
    EXPECT_GE(result.at("peak_device_reserved_bytes"), result.at("peak_device_bytes"));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Precision, ::testing::Values("bf16", "tf32", "fp32"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace millrace::testing
