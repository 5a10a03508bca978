// Steps of SGD against torchvision's, with its draws: the losses of each step, and what became of
// the weights.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "millrace/dataflow/detection/transforms.h"
#include "millrace/detector/make_detector.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "tests/parity/training_parts.h"

namespace millrace::testing {
namespace {

/// Row `at` of the ragged array `name`; `offsets` names its offsets where they are another's.
at::Tensor row(const GoldenRun& golden, const std::string& name, std::int64_t at,
               const std::string& offsets) {
  const auto* offset = golden[offsets + "_offsets"].data_ptr<std::int64_t>();
  return golden[name].narrow(0, offset[at], offset[at + 1] - offset[at]);
}

at::Tensor indices(const GoldenRun& golden, const std::string& name, std::int64_t at) {
  return row(golden, name, at, name).to(at::kLong);
}

/// The ground truth of a fixture in the network's pixels, as torchvision's transform resizes it.
RecordedTruth truth_of(const GoldenRun& golden, const std::string& fixture, const ImageSize& size) {
  const auto& masks = golden["target" + fixture + ".masks"];
  const auto scale_y = static_cast<float>(size.first) / static_cast<float>(masks.size(1)),
             scale_x = static_cast<float>(size.second) / static_cast<float>(masks.size(2));
  RecordedTruth truth(
      golden["target" + fixture + ".boxes"] * at::tensor({scale_x, scale_y, scale_x, scale_y}),
      golden["target" + fixture + ".labels"], masks);
  for (auto& shape : truth.shapes)
    shape = resized(std::get<coco::Rle>(shape), static_cast<std::uint32_t>(size.second),
                    static_cast<std::uint32_t>(size.first), Sampling::corners);
  truth.height = size.first;
  truth.width = size.second;
  return truth;
}

/// The losses of step `step` as recorded, by name.
std::map<std::string, double> recorded_losses(const GoldenRun& golden, std::int64_t step) {
  std::map<std::string, double> losses;
  const auto& names = golden.argument("loss_names");
  for (std::size_t i = 0; i < names.size(); ++i)
    losses[names[i]] = golden["losses"][step][static_cast<std::int64_t>(i)].item<double>();
  return losses;
}

TEST(TraceParity, EveryStepOfSgdHasTheSameLosses) {
  each_golden("losses", [](const GoldenRun& golden) {
    GoldenModel model(golden);
    std::map<std::string, at::Tensor> start;
    for (const auto& [name, value, kind, classes] : model.parameters)
      start[name] = value.detach().clone();
    OptimizerOptions options;
    options.momentum = golden.argument("momentum");
    options.weight_decay = golden.argument("wd");
    const auto sgd = make_optimizer(model.parameters, options);

    const auto& order = golden["order"];
    std::int64_t sample = 0;
    for (std::int64_t step = 0; step < order.size(0); ++step) {
      std::vector<at::Tensor> photos;
      std::vector<std::string> fixtures;
      for (std::int64_t k = 0; k < order.size(1); ++k) {
        fixtures.push_back(std::to_string(order[step][k].item<std::int64_t>()));
        photos.push_back(golden["image" + fixtures.back()]);
      }
      at::Tensor sizes;
      const auto input = torchvision_input(photos, golden, sizes);
      const auto features = model.features(input, sizes, /*training=*/true);
      std::vector<RecordedTruth> objects;
      std::vector<RecordedDraw> draws;
      for (std::size_t k = 0; k < fixtures.size(); ++k, ++sample) {
        objects.push_back(truth_of(golden, fixtures[k], features.sizes[k]));
        const auto regions = [&](const char* name) {
          return row(golden, name, sample, "roi.boxes");
        };
        draws.push_back(
            {indices(golden, "rpn.pos", sample), indices(golden, "rpn.neg", sample),
             sampled_regions(regions("roi.boxes"), regions("roi.labels"), regions("roi.matched"))});
      }
      std::vector<Truth> truths;
      for (const auto& object : objects) truths.push_back(object.borrowed());

      const auto losses = losses_of(model, features, truths, draws);
      at::Tensor sum;
      for (const auto& [name, expected] : recorded_losses(golden, step)) {
        const auto& loss = losses.at(name);
        EXPECT_NEAR(loss.item<double>(), expected, 1e-3 * std::max(1.0, expected))
            << name << " of step " << step;
        sum = sum.defined() ? sum + loss : loss;
      }
      sum.backward();
      sgd->step(golden["lr"][step].item<double>());
    }

    const at::NoGradGuard no_grad;
    for (const auto& [name, value, kind, classes] : model.parameters) {
      if (!golden.has("final_delta." + name)) continue;
      const auto values = value.to(at::kDouble), before = start[name].to(at::kDouble);
      const auto norm = golden["final_norm." + name].item<double>();
      const auto moved = golden["final_delta." + name].item<double>();
      EXPECT_NEAR(values.norm().item<double>(), norm, 1e-5 * norm) << name;
      EXPECT_NEAR((values - before).norm().item<double>(), moved, 1e-2 * moved) << name;
      if (golden.has("final64." + name)) {
        const auto& expected = golden["final64." + name];
        const auto first = value.contiguous().flatten().narrow(0, 0, expected.numel());
        EXPECT_LT((first - expected).abs().max().item<double>(), 1e-2 * moved) << name;
      }
    }
  });
}

}  // namespace
}  // namespace millrace::testing
