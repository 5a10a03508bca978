// Steps of SGD against torchvision's, with its draws: the losses of each step, and what became of
// the weights.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>

#include "millrace/base/random.h"
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

/// A training along a recording.
struct Trace {
  std::vector<std::map<std::string, double>> losses;  // of each step, by name
  std::map<std::string, at::Tensor> start, end;       // weights by name, float64
};

/// Moves every weight to a neighbouring number, up or down by chance.
void nudge_last_bits(const Parameters& parameters, std::uint64_t step) {
  const at::NoGradGuard no_grad;
  std::uint64_t number = 0;
  for (const auto& parameter : parameters) {
    auto values = parameter.value.contiguous();
    Rng rng{step, ++number};
    auto* value = values.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < values.numel(); ++i)
      value[i] = std::nextafter(value[i], rng.chance(0.5) ? HUGE_VALF : -HUGE_VALF);
    at::Tensor(parameter.value).copy_(values);
  }
}

std::map<std::string, at::Tensor> weights_of(const GoldenModel& model) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& parameter : model.parameters)
    weights[parameter.name] = parameter.value.detach().to(at::kDouble).clone();
  return weights;
}

/// Trains by SGD with the recorded draws; `nudged`: every step starts from weights whose last bits
/// were moved.
Trace train(const GoldenRun& golden, bool nudged) {
  GoldenModel model(golden);
  Trace trace{.start = weights_of(model)};
  OptimizerOptions options;
  options.momentum = golden.argument("momentum");
  options.weight_decay = golden.argument("wd");
  const auto sgd = make_optimizer(model.parameters, options);

  const auto& order = golden["order"];
  std::int64_t sample = 0;
  for (std::int64_t step = 0; step < order.size(0); ++step) {
    if (nudged) nudge_last_bits(model.parameters, static_cast<std::uint64_t>(step));
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
      const auto regions = [&](const char* name) { return row(golden, name, sample, "roi.boxes"); };
      draws.push_back(
          {indices(golden, "rpn.pos", sample), indices(golden, "rpn.neg", sample),
           sampled_regions(regions("roi.boxes"), regions("roi.labels"), regions("roi.matched"))});
    }
    std::vector<Truth> truths;
    for (const auto& object : objects) truths.push_back(object.borrowed());

    at::Tensor sum;
    auto& losses = trace.losses.emplace_back();
    for (const auto& [name, loss] : losses_of(model, features, truths, draws)) {
      losses[name] = loss.item<double>();
      sum = sum.defined() ? sum + loss : loss;
    }
    sum.backward();
    sgd->step(golden["lr"][step].item<double>());
  }
  trace.end = weights_of(model);
  return trace;
}

TEST(TraceParity, EveryStepOfSgdHasTheSameLosses) {
  each_golden("losses", [](const GoldenRun& golden) {
    const auto ours = train(golden, /*nudged=*/false), nudged = train(golden, /*nudged=*/true);
    std::map<std::string, double> spread;
    for (std::size_t step = 0; step < ours.losses.size(); ++step)
      for (const auto& [name, expected] :
           recorded_losses(golden, static_cast<std::int64_t>(step))) {
        const double loss = ours.losses[step].at(name);
        spread[name] = std::max(spread[name], std::abs(nudged.losses[step].at(name) - loss));
        std::printf("%zu %s %.3g off %.3g nudge %.3g\n", step, name.c_str(), expected,
                    std::abs(loss - expected), spread[name]);
      }
    for (const auto& [name, start] : ours.start) {
      if (!golden.has("final_delta." + name)) continue;
      const auto& end = ours.end.at(name);
      const auto norm = golden["final_norm." + name].item<double>();
      const auto moved = golden["final_delta." + name].item<double>();
      const double nudge = (nudged.end.at(name) - end).norm().item<double>();
      std::printf("%s norm %.3g delta %.3g nudge %.3g moved %.3g\n", name.c_str(),
                  std::abs(end.norm().item<double>() - norm),
                  std::abs((end - start).norm().item<double>() - moved), nudge, moved);
      if (golden.has("final64." + name)) {
        const auto& expected = golden["final64." + name];
        const auto first = end.flatten().narrow(0, 0, expected.numel());
        const auto other = nudged.end.at(name).flatten().narrow(0, 0, expected.numel());
        std::printf("   64 off %.3g nudge %.3g\n", (first - expected).abs().max().item<double>(),
                    (other - first).abs().max().item<double>());
      }
    }
  });
}

}  // namespace
}  // namespace millrace::testing
