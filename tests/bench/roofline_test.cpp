// The layers that roofline.py computes with are those of a real step: as many FLOPs in convolutions
// and matrix products, forwards and backwards, and as many parameters to train.
#include <ATen/TensorOperators.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "millrace/base/config.h"
#include "millrace/trainer/detector/make_detector.h"
#include "millrace/trainer/run/recipe.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

struct Counted {
  std::int64_t forward = 0, backward = 0;  // FLOPs
  std::int64_t boxes = 0, masks = 0;       // regions
} counted;

std::int64_t product(at::IntArrayRef sizes) { return c10::multiply_integers(sizes); }

/// FLOPs of a convolution with a weight (out, in, k, k), or of a transposed one, (in, out, k, k).
std::int64_t convolution_flops(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weight,
                               bool transposed) {
  return 2 * (transposed ? x : y).numel() * product(weight.sizes().slice(1));
}

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction&) { return nullptr; }

void end_op(const at::RecordFunction& op, at::ObserverContext*) {
  const std::string_view name = op.name();
  const auto inputs = op.inputs();
  const auto tensor = [&](std::size_t i) { return inputs[i].toTensor(); };
  if (name == "aten::convolution" || name == "mkldnn::_convolution_pointwise") {
    const bool transposed = name == "aten::convolution" && inputs[6].toBool();
    const auto x = tensor(0);
    counted.forward += convolution_flops(x, op.outputs()[0].toTensor(), tensor(1), transposed);
    if (x.size(2) == 14 && x.size(3) == 14) counted.masks = x.size(0);
  } else if (name == "aten::convolution_backward") {
    const auto each = convolution_flops(tensor(1), tensor(0), tensor(2), inputs[7].toBool());
    for (const bool wanted : {inputs[10].toBoolList().get(0), inputs[10].toBoolList().get(1)})
      if (wanted) counted.backward += each;
  } else if (name == "aten::addmm") {
    const auto x = tensor(1);
    counted.forward += 2 * x.numel() * tensor(2).size(1);
    if (x.size(1) == 256 * 49) counted.boxes = x.size(0);
  } else if (name == "aten::mm") {
    counted.backward += 2 * tensor(0).numel() * tensor(1).size(1);
  }
}

nlohmann::json roofline(const Batch& batch, std::size_t classes) {
  const auto command = fmt::format(
      "python3 tests/bench/roofline.py --json --batch {} --height {} --width {} --classes {} "
      "--boxes {} --masks {}",
      batch.size(), batch.height, batch.width, classes, counted.boxes, counted.masks);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), size);
  return nlohmann::json::parse(text);
}

TEST(Roofline, CountsTheFlopsAndParametersOfARealStep) {
  const std::vector<std::string> no_weights = {"model.weights=''"};
  const auto recipe = resolve(load_config("configs/coco/mask_rcnn_R50_FPN_1x.toml", no_weights));
  const std::vector<std::string> classes = {"star", "ring", "disc"};
  const auto detector = make_detector(recipe.model_type, recipe.model, {classes, 1, at::kCPU});
  const auto batch = small_batch();

  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(begin_op, end_op).needsInputs(true).needsOutputs(true));
  at::Tensor total;
  for (const auto& [name, loss] : losses_of(*detector, batch, {.seed = 1}))
    total = total.defined() ? total + loss : loss;
  total.backward();
  at::removeCallback(handle);

  std::int64_t trainable = 0;
  for (const auto& parameter : detector->parameters())
    if (parameter.trainable()) trainable += parameter.value.numel();
  ASSERT_GT(counted.boxes, 0);
  ASSERT_GT(counted.masks, 0);
  const auto model = roofline(batch, classes.size());
  EXPECT_EQ(model.at("matrix_flops").at("forward"), counted.forward);
  EXPECT_EQ(model.at("matrix_flops").at("backward"), counted.backward);
  EXPECT_EQ(model.at("trainable"), trainable);
}

}  // namespace
}  // namespace millrace::testing
