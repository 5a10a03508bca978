// The layers in roofline.py match those of a real step: the same FLOPs in convolutions and matrix
// products, forward and backward, and the same number of trainable parameters. Winograd
// convolutions are counted like direct ones, and pixels without a gradient are counted like all
// other pixels.
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
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/run/recipe.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

struct Counted {
  std::int64_t forward = 0, backward = 0;          // FLOPs
  std::int64_t boxes = 0, masks = 0, anchors = 0;  // regions, and sampled anchors
  bool is_backward = false;
  std::int64_t depth = 0;  // nesting depth of counted operators
} counted;

/// Returns the FLOPs of a convolution with weight [out, in, k, k], where `values` is the number of
/// output values, or of a transposed convolution with weight [in, out, k, k], where `values` is the
/// number of input values.
std::int64_t convolution_flops(std::int64_t values, const at::Tensor& weight) {
  return 2 * values * c10::multiply_integers(weight.sizes().slice(1));
}

/// Returns the number of output values of a convolution.
std::int64_t output_values(const at::Tensor& x, const at::Tensor& weight, std::int64_t padding,
                           std::int64_t stride) {
  const auto side = [&](std::int64_t i) {
    return (x.size(i) + 2 * padding - weight.size(i)) / stride + 1;
  };
  return x.size(0) * weight.size(0) * side(2) * side(3);
}

constexpr std::string_view kSparse = "millrace::sparse_convolution_backward";

/// Returns the FLOPs of an operator's call; 0 if the operator is not counted.
std::int64_t flops_of(const at::RecordFunction& op) {
  const std::string_view name = op.name();
  const auto input = [&](std::size_t i) -> const c10::IValue& { return op.inputs()[i]; };
  const auto tensor = [&](std::size_t i) { return input(i).toTensor(); };
  const auto number = [&](std::size_t i) { return input(i).toIntVector()[0]; };
  const auto wanted = [&](std::size_t i) {
    const auto each = input(i).toBoolList();
    return each[0] + each[1];
  };
  const auto of_convolution = [&](const at::Tensor& x, std::int64_t values) {
    if (x.size(2) == 14 && x.size(3) == 14) counted.masks = x.size(0);
    return convolution_flops(values, tensor(1));
  };
  if (name == "millrace::winograd") {
    std::int64_t flops = 0;
    for (const at::Tensor& map : input(0).toTensorVector())
      flops += of_convolution(map, output_values(map, tensor(1), 1, 1));
    return flops;
  }
  const bool fused = name == "mkldnn::_convolution_pointwise";
  if (fused || name == "aten::convolution") {
    const auto x = tensor(0);
    const bool transposed = !fused && input(6).toBool();
    return of_convolution(
        x, transposed ? x.numel()
                      : output_values(x, tensor(1), number(fused ? 3 : 4), number(fused ? 4 : 3)));
  }
  if (name == "aten::convolution_backward")
    return convolution_flops(tensor(input(7).toBool() ? 1 : 0).numel(), tensor(2)) * wanted(10);
  const auto numel = [&](std::size_t i) {
    std::int64_t sum = 0;
    for (const at::Tensor& map : input(i).toTensorVector()) sum += map.numel();
    return sum;
  };
  if (name == "millrace::winograd_backward")
    return convolution_flops(numel(0), tensor(2)) * wanted(3);
  if (name == kSparse) return convolution_flops(numel(0), tensor(3)) * wanted(6);
  if (name == "aten::bmm") return 2 * tensor(0).numel() * tensor(1).size(2);
  if (name != "mkldnn::_linear_pointwise") return 0;
  const auto x = tensor(0);
  if (!counted.is_backward && x.size(1) == 256 * 49) counted.boxes = x.size(0);
  if (!counted.is_backward && x.size(1) == 256 * 9) counted.anchors = x.size(0);
  return 2 * x.numel() * tensor(1).size(0);
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (counted.depth == 0)
    (counted.is_backward ? counted.backward : counted.forward) += flops_of(op);
  counted.depth += op.name() == kSparse;
  return nullptr;
}

void end(const at::RecordFunction& op, at::ObserverContext*) {
  counted.depth -= op.name() == kSparse;
}

nlohmann::json roofline(const Batch& batch, std::size_t classes) {
  const auto command = fmt::format(
      "python3 tests/bench/roofline.py --json --batch {} --height {} --width {} --classes {} "
      "--boxes {} --masks {} --anchors {}",
      batch.size(), batch.height, batch.width, classes, counted.boxes, counted.masks,
      counted.anchors);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), size);
  return nlohmann::json::parse(text);
}

TEST(Roofline, MatchesFlopsOfRealStep) {
  const std::vector<std::string> no_weights = {"model.weights=''"};
  const auto recipe = resolve(load_config("configs/coco/mask_rcnn_R50_FPN_1x.toml", no_weights));
  const std::vector<std::string> classes = {"star", "ring", "disc"};
  const auto detector = make_detector(recipe.model_type, recipe.model, {classes, 1, at::kCPU});
  const auto batch = small_batch();

  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(begin, end).needsInputs(true));
  at::Tensor total;
  for (const auto& [name, loss] : detector->losses(batch, {.seed = 1}))
    total = total.defined() ? total + loss : loss;
  counted.is_backward = true;
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
