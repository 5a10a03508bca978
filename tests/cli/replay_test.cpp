// `run --replay` names the operator that computed the first non-finite value, for any detector and
// precision.
#include <cstring>
#include <limits>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

/// Sets all values of a tensor in a safetensors file to `value`.
void overwrite(const fs::path& file, const std::string& tensor, float value) {
  auto bytes = read_text(file);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const auto header = Json::parse(bytes.substr(8, length));
  ASSERT_TRUE(header.contains(tensor)) << tensor;
  ASSERT_EQ(header[tensor]["dtype"], "F32");
  const auto first = header[tensor]["data_offsets"][0].get<std::size_t>(),
             last = header[tensor]["data_offsets"][1].get<std::size_t>();
  for (auto i = first; i < last; i += sizeof(value))
    std::memcpy(&bytes[8 + length + i], &value, sizeof(value));
  write_text(file, bytes);
}

struct Case {
  std::string detector, precision;
  std::string layer;   // layer whose weights are overwritten
  std::string kernel;  // operator that multiplies with them
  friend void PrintTo(const Case& one, std::ostream* out) {
    *out << one.detector << " in " << one.precision << ", " << one.layer;
  }
};

class Replay : public Trainer, public ::testing::WithParamInterface<Case> {
 protected:
  /// Trains for one or two steps and returns the run's folder.
  fs::path train(const fs::path& data, const std::string& name, const Words& settings) const {
    auto command = on(data, {"run"},
                      settings + kTrainOnly +
                          Words{"train.precision=" + GetParam().precision,
                                setting("train.output", in_folder(name))});
    command[1] = "configs/" + GetParam().detector + ".toml";
    successful(trainer(command));
    return in_folder(name) / (GetParam().detector + "-1");
  }
};

INSTANTIATE_TEST_SUITE_P(
    Everywhere, Replay,
    ::testing::Values(Case{"maskrcnn", "fp32", "roi_heads.box_head.fc7.weight",
                           "mkldnn::_linear_pointwise"},
                      Case{"maskrcnn", "bf16", "roi_heads.mask_head.0.0.weight",
                           "mkldnn::_convolution_pointwise"},
                      Case{"fasterrcnn", "fp32", "backbone.body.layer2.0.conv1.weight",
                           "mkldnn::_convolution_pointwise"},
                      Case{"cascadercnn", "bf16", "roi_heads.box_predictor.1.bbox_pred.weight",
                           "mkldnn::_linear_pointwise"},
                      Case{"retinanet", "fp32", "head.regression_head.bbox_reg.weight",
                           "mkldnn::_convolution_pointwise"},
                      Case{"retinanet", "bf16", "backbone.fpn.layer_blocks.1.0.weight",
                           "mkldnn::_convolution_pointwise"}),
    [](const auto& one) { return one.param.detector + "_" + one.param.precision; });

TEST_P(Replay, NamesLayerWithLargeWeights) {
  const auto data = make_data();
  const auto diverged = train(data, "diverged",
                              {"train.max_steps=2", "optimizer.lr=1e30", "optimizer.clip_norm=0.0",
                               "schedule.warmup=0 steps", "callbacks.checkpoint.enabled=false"});
  const auto record = diverged / "diverged/step-000002";
  ASSERT_TRUE(fs::exists(record));
  const auto replay = successful(trainer({"run", "--replay", record}));
  EXPECT_THAT(replay.out, AllOf(Not(HasSubstr("not reproduced")), HasSubstr("finite inputs"),
                                Not(ContainsRegex("aten::(zero_|empty|copy_|fill_|resize_)"))));

  // A step from initial weights, except one layer: its weights are finite, but its sums of products
  // overflow.
  const auto healthy = train(data, "healthy", {"train.max_steps=1"});
  const auto model = record / "model.safetensors";
  fs::copy_file(healthy / "checkpoints/step-000001/model.safetensors", model,
                fs::copy_options::overwrite_existing);
  overwrite(model, GetParam().layer, 3e38F);
  const auto spoilt = trainer({"run", "--replay", record});
  EXPECT_THAT(spoilt.out, ContainsRegex("finite inputs .*" + GetParam().kernel +
                                        " .*forward pass: .*'" + GetParam().layer + "'"));

  overwrite(model, GetParam().layer, std::numeric_limits<float>::quiet_NaN());
  const auto broken = trainer({"run", "--replay", record});
  EXPECT_THAT(broken.out,
              AllOf(ContainsRegex("1 weights .*'" + GetParam().layer),
                    ContainsRegex("weight as input .*forward pass: .*'" + GetParam().layer + "'")));
}

}  // namespace
}  // namespace millrace::testing
