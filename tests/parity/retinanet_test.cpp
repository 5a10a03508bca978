// Compares RetinaNet with torchvision's on the same weights and images. Skipped if Python lacks
// torchvision.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/retinanet/options.h"
#include "millrace/models/weights/safetensors.h"
#include "tests/models/small_batch.h"
#include "tests/support/python.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

const std::string kTable =
    "backbone.type = 'resnet18'\nstyle = 'torchvision'\ntest.score_thresh = "
    "0.009\nbackbone.freeze_at = 0\n";

class RetinaNetParity : public ::testing::Test {
 protected:
  void SetUp() override {
    MILLRACE_NEEDS_PYTHON("torchvision, safetensors.torch");
    const auto folder = std::filesystem::temp_directory_path() / "millrace-retinanet";
    std::filesystem::create_directories(folder);
    table_ = parse_config(kTable, "test");
    model_ = detectors().at("retinanet").create(table_, {{"star", "ring", "disc"}, 1});
    {  // class 0 is the background, which a trained network never predicts
      const at::NoGradGuard no_grad;
      const auto* bias = model_->parameters().find("head.classification_head.cls_logits.bias");
      bias->value.view({9, 4}).select(1, 0).fill_(-20);
    }
    NamedTensors given;
    for (const auto& parameter : model_->parameters())
      given.emplace_back(parameter.name, parameter.value.detach());
    given.emplace_back("in.batch",
                       normalize(batch_, default_options<RetinaNetOptions>(table_).pyramid));
    given.emplace_back("in.threshold", at::full({}, 0.009));
    given.emplace_back("in.sizes", at::tensor({64, 96, 60, 80}, at::kLong).view({2, 2}));
    const auto truths = truths_of(batch_);
    for (std::size_t i = 0; i < 2; ++i) {
      given.emplace_back("in.boxes" + std::to_string(i), truths[i].boxes);
      given.emplace_back("in.labels" + std::to_string(i), truths[i].labels + 1);
    }
    write_safetensors(folder / "in.safetensors", given);
    ASSERT_EQ(run_python("tests/parity/torchvision_retinanet.py '" +
                         (folder / "in.safetensors").string() + "' '" +
                         (folder / "out.safetensors").string() + "'"),
              0);
    for (auto& [name, tensor] : read_safetensors(folder / "out.safetensors"))
      theirs_[name] = tensor;
    std::filesystem::remove_all(folder);
  }

  Config table_;
  Batch batch_ = small_batch();
  std::unique_ptr<Detector> model_;
  std::map<std::string, at::Tensor> theirs_;
};

TEST_F(RetinaNetParity, MatchesLossesGradientsAndDetections) {
  std::vector<at::Tensor> maps;
  for (const auto& [height, width] : {std::pair{8, 12}, {4, 6}, {2, 3}, {1, 2}, {1, 1}})
    maps.push_back(at::zeros({2, 1, height, width}));
  const AnchorGrids anchors(default_options<RetinaNetOptions>(table_).anchors, 8);
  EXPECT_TRUE(tensors_equal(anchors(maps, {64, 96}).anchors, theirs_["anchors"]));

  const auto losses = model_->losses(batch_, {});
  for (const auto& [name, loss] : losses)
    EXPECT_TRUE(tensors_close(
        loss, theirs_[name == "loss_cls" ? "loss.classification" : "loss.regression"], 1e-5))
        << name;
  total_of(losses).backward();
  std::size_t compared = 0;
  for (const auto& parameter : model_->parameters()) {
    const auto theirs = theirs_.find("grad." + parameter.name);
    if (theirs == theirs_.end()) continue;
    EXPECT_TRUE(tensors_close(parameter.value.grad(), theirs->second, 2e-4)) << parameter.name;
    ++compared;
  }
  EXPECT_EQ(compared, 36U);

  const auto found = model_->detect(batch_);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto boxes = theirs_["boxes" + std::to_string(i)],
               scores = theirs_["scores" + std::to_string(i)],
               labels = theirs_["labels" + std::to_string(i)];
    ASSERT_EQ(std::ssize(found[i]), boxes.size(0));
    ASSERT_FALSE(found[i].empty());
    for (std::size_t d = 0; d < found[i].size(); ++d) {
      const auto row = static_cast<std::int64_t>(d);
      const auto& [box, label, score, mask] = found[i][d];
      EXPECT_NEAR(score, scores[row].item<double>(), 1e-6);
      EXPECT_EQ(label + 1, labels[row].item<std::int64_t>());
      const auto ours = at::tensor({box.x1, box.y1, box.x2, box.y2}) * 0.5;  // in network pixels
      EXPECT_LT((ours - boxes[row]).abs().max().item<double>(), 1e-3) << d;
    }
  }
}

}  // namespace
}  // namespace millrace::testing
