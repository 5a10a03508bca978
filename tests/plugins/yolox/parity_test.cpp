// Compares YOLOX with the package `yolox`: always with recorded values, and with the package itself
// if Python has it (see reference.py).
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <tuple>

#include "millrace/models/detector/loss_sums.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "tests/plugins/yolox/reference.h"
#include "tests/support/optimizer_step.h"
#include "tests/support/python.h"
#include "tests/support/tensors.h"

namespace millrace::yolox {
namespace {

using millrace::testing::tensors_close;
using Tensors = std::map<std::string, at::Tensor>;

Tensors tensors_of(const std::filesystem::path& file) {
  Tensors all;
  for (auto& [name, tensor] : read_safetensors(file)) all[name] = tensor;
  return all;
}

/// Returns all values computed by the installed package; empty if it is not installed.
const Tensors& of_package() {
  static const Tensors all = [] {
    constexpr auto kHasIt =
        "-c 'import importlib.util, sys, safetensors.torch, torchvision; "
        "sys.exit(importlib.util.find_spec(\"yolox\") is None)' 2>/dev/null";
    if (testing::run_python(kHasIt) != 0) return Tensors();
    const auto file = std::filesystem::temp_directory_path() /
                      ("millrace-yolox-" + std::to_string(::getpid()) + ".safetensors");
    if (testing::run_python("-W ignore tests/plugins/yolox/reference.py '" + file.string() + "'") !=
        0)
      return Tensors();
    auto read = tensors_of(file);
    std::filesystem::remove(file);
    return read;
  }();
  return all;
}

/// Returns the sums of the values, of their absolute values, and of their products with the
/// formula's values.
at::Tensor sums(const std::string& name, const at::Tensor& tensor) {
  const auto values = tensor.detach().to(at::kDouble);
  return at::stack(
      {values.sum(), values.abs().sum(), (values * formula(name, values.sizes())).sum()});
}

/// Parameters: the model, and true to run the package instead of reading its recorded values.
class Yolox030 : public ::testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  void SetUp() override {
    const auto& [model, asked] = GetParam();
    static const Tensors recorded = tensors_of("tests/plugins/yolox/recorded.safetensors");
    if (asked && of_package().empty())
      GTEST_SKIP() << "yolox, torchvision or safetensors is not installed in " << testing::python()
                   << " (set MILLRACE_PEERS_PYTHON to a Python with all three)";
    for (const auto& [name, tensor] : asked ? of_package() : recorded)
      if (name.starts_with(model + "/")) theirs_[name.substr(model.size() + 1)] = tensor;
    model_ = by_formula(model, {.l1_from = 1, .detections_per_img = 1000});
  }

  void expect_close(const std::string& name, const at::Tensor& ours, double relative) const {
    if (const auto found = theirs_.find(name); found != theirs_.end()) {
      EXPECT_TRUE(tensors_close(ours, found->second, relative)) << name;
      return;
    }
    expect_sums(name, sums(name, ours), theirs_.at(name + ".sums"), relative);
  }

  /// Compares a family of tensors, all of which the package must have.
  void expect_close(const std::string& family, const Tensors& ours, double relative) const {
    const auto table = theirs_.find(family + "sums");
    std::int64_t row = 0;
    for (const auto& [name, tensor] : ours) {
      if (table == theirs_.end())
        expect_close(family + name, tensor, relative);
      else
        expect_sums(name, sums(name, tensor), table->second[row++], relative);
    }
    if (table != theirs_.end()) {
      EXPECT_EQ(row, table->second.size(0));
    }
  }

  /// Expects each sum to differ by at most `relative` times the sum of absolute values.
  static void expect_sums(const std::string& name, const at::Tensor& ours, const at::Tensor& theirs,
                          double relative) {
    const auto off = (ours - theirs).abs().max().item<double>();
    EXPECT_LE(off, relative * theirs[1].item<double>()) << name;
  }

  Tensors parameters(bool gradients) const {
    Tensors all;
    for (const auto& parameter : model_->parameters())
      if (!gradients || parameter.trainable())
        all[parameter.name] = gradients ? parameter.value.grad() : parameter.value;
    return all;
  }

  static at::Tensor total(const Losses& losses) {
    auto sum = losses[0].second;
    for (std::size_t i = 1; i < losses.size(); ++i) sum = sum + losses[i].second;
    return sum;
  }

  Tensors theirs_;
  std::unique_ptr<Yolox> model_;
};

INSTANTIATE_TEST_SUITE_P(
    All, Yolox030, ::testing::Combine(::testing::Values("plain", "depthwise"), ::testing::Bool()),
    [](const auto& of) {
      return std::get<0>(of.param) + (std::get<1>(of.param) ? "AsInstalled" : "AsRecorded");
    });

TEST_P(Yolox030, MatchesMapsAndDetections) {
  const at::NoGradGuard no_grad;
  const auto pixels = images();
  const auto dark = model_->pyramid().backbone()(pixels, {});
  const auto maps = model_->pyramid()(pixels, {});
  for (std::size_t level = 0; level < maps.size(); ++level) {
    expect_close("dark" + std::to_string(level), dark[level], 1e-5);
    expect_close("feature" + std::to_string(level), maps[level], 1e-5);
  }
  const auto raw = model_->outputs(pixels, {});
  const auto grid = Grid::of(kHeight, kWidth, at::kCPU);
  expect_close("decoded",
               at::cat({decoded(raw.boxes, grid.corners, grid.strides),
                        raw.objects.sigmoid().unsqueeze(2), raw.classes.sigmoid()},
                       2),
               1e-5);
  const auto found = model_->find(pixels);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto theirs = theirs_.at("found" + std::to_string(i));
    ASSERT_EQ(found[i].boxes.size(0), theirs.size(0));
    EXPECT_TRUE(tensors_close(found[i].boxes, theirs.narrow(1, 0, 4), 1e-5));
    EXPECT_TRUE(tensors_close(found[i].scores, theirs.select(1, 4) * theirs.select(1, 5), 1e-5));
    EXPECT_TRUE(tensors_close(found[i].labels, theirs.select(1, 6), 0));
  }
}

TEST_P(Yolox030, MatchesAssignedCells) {
  const at::NoGradGuard no_grad;
  const auto raw = model_->outputs(images(), {.training = true});
  const auto grid = Grid::of(kHeight, kWidth, at::kCPU);
  const Outputs outputs{decoded(raw.boxes, grid.corners, grid.strides), raw.objects, raw.classes};
  const auto all = truths();
  const auto assigned = assign(outputs, grid, by_centre(at::cat({all[0].boxes, all[1].boxes})),
                               at::cat({all[0].labels, all[1].labels}), {3, 1});
  const auto theirs = [&](std::int64_t image, const char* what) {
    return theirs_.at("assigned" + std::to_string(image) + "." + what);
  };
  const auto cells = grid.strides.size(0);
  EXPECT_TRUE(
      tensors_close(assigned.rows, at::cat({theirs(0, "cells"), theirs(1, "cells") + cells}), 0));
  EXPECT_TRUE(tensors_close(assigned.objects,
                            at::cat({theirs(0, "objects"), theirs(1, "objects") + 3}), 0));
  EXPECT_TRUE(tensors_close(assigned.ious, at::cat({theirs(0, "ious"), theirs(1, "ious")}), 1e-3));
}

TEST_P(Yolox030, MatchesLossesGradientsAndStatistics) {
  for (const bool l1 : {false, true}) {
    set_by_formula(*model_);
    const auto losses =
        means_of(model_->losses_of(images(), truths(), {.progress = l1 ? 1.0 : 0.99}));
    const std::string place = l1 ? "l1." : "";
    const char* names[] = {"iou_loss", "conf_loss", "cls_loss", "l1_loss"};
    for (std::size_t i = 0; i < losses.size(); ++i)
      expect_close(place + names[i], losses[i].second.detach().view({1}), 1e-4);
    total(losses).backward();
    expect_close(place + "grad.", parameters(/*gradients=*/true), 5e-3);
    for (const auto& parameter : model_->parameters())
      if (parameter.trainable()) parameter.value.mutable_grad().reset();
  }
  Tensors statistics;
  for (const auto& parameter : model_->parameters())
    if (parameter.kind == ParameterKind::buffer) statistics[parameter.name] = parameter.value;
  expect_close("after.", statistics, 1e-5);
}

TEST_P(Yolox030, MatchesTwentyTrainingSteps) {
  const auto optimizer = make_optimizer(
      model_->parameters(),
      {.nesterov = true, .weight_decay = 5e-4, .weight_decay_bias = 0, .weight_decay_norm = 0});
  std::vector<at::Tensor> losses;
  for (std::int64_t step = 0; step < 20; ++step) {
    losses.push_back(total(means_of(model_->losses_of(images(), truths(), {.step = step}))));
    losses.back().backward();
    testing::take_step(*optimizer, 1e-4);
    if (step != 1) continue;
    Tensors moved;  // only after this step, since rounding errors grow later
    for (const auto& [name, value] : parameters(/*gradients=*/false))
      moved[name] = value.detach() - value_of(name, value.sizes()).to(at::kFloat);
    expect_close("moved.", moved, 0.15);
  }
  const auto first = at::stack(losses).detach(), theirs = theirs_.at("steps.loss");
  EXPECT_TRUE(tensors_close(first.narrow(0, 0, 2), theirs.narrow(0, 0, 2), 1e-4));
  EXPECT_TRUE(tensors_close(first, theirs, 0.03));
}

}  // namespace
}  // namespace millrace::yolox
