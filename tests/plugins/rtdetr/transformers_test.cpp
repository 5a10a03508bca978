// Compares RT-DETR with Hugging Face's implementation, recorded by transformers_rtdetr.py. If
// Python has the package, all values are recorded again and compared.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "millrace/models/detector/loss_sums.h"
#include "millrace/models/layers/pixels.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/plugins/rtdetr/network.h"
#include "millrace/plugins/rtdetr/rtdetr.h"
#include "millrace/plugins/rtdetr/set_losses.h"
#include "tests/plugins/rtdetr/tiny.h"
#include "tests/support/python.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::rtdetr::testing {
namespace {

using millrace::testing::Scratch;
using millrace::testing::tensors_close;
using Tensors = std::map<std::string, at::Tensor>;

constexpr int kSteps = 20;
constexpr double kMomentum = 0.9;

Tensors recorded(const std::filesystem::path& file, const std::string& version) {
  Tensors tensors;
  for (const auto& [name, value] : millrace::read_safetensors(file))
    if (name.starts_with(version + ".")) tensors.emplace(name.substr(version.size() + 1), value);
  return tensors;
}

Prediction narrowed(const Prediction& all, std::int64_t first, std::int64_t count) {
  return {all.logits.narrow(1, first, count), all.boxes.narrow(1, first, count)};
}

/// The values that the script recorded: a few of each tensor, or all.
class Values {
 public:
  explicit Values(at::Tensor all, bool whole) : all_(std::move(all)), whole_(whole) {}

  void expect(const std::string& name, const at::Tensor& tensor, double relative) {
    constexpr std::int64_t kSome = 8;
    const auto flat = tensor.detach().flatten();
    const auto count = flat.size(0);
    const bool all = whole_ || count <= kSome;
    const auto own =
        all ? flat
            : flat.index_select(
                  0, (at::arange(kSome, at::kLong) * (count - 1)).div(kSome - 1, "floor"));
    ASSERT_LE(next_ + own.size(0), all_.size(0)) << name;
    const auto theirs = all_.narrow(0, next_, own.size(0));
    next_ += own.size(0);
    const auto off = (own - theirs).abs().max().item<double>();
    EXPECT_LE(off, 1e-5 + relative * theirs.abs().max().item<double>()) << name;
  }
  void expect_end() const { EXPECT_EQ(next_, all_.size(0)); }

 private:
  at::Tensor all_;
  bool whole_;
  std::int64_t next_ = 0;
};

/// One of the script's networks.
struct Tiny {
  explicit Tiny(const std::string& version)
      : options(tiny_options(version)),
        network(Scope(parameters, /*seed=*/1) / "model", options, kClasses) {
    set_made_up_weights(parameters);
    for (const auto& parameter : parameters) by_name.emplace(parameter.name, parameter.value);
  }

  Network::Memory encode(bool training) const {
    return network.encode(millrace::normalize(tiny_batch(), options.pixels),
                          {.training = training});
  }

  Network::Output decode(const Network::Memory& memory) const {
    const auto queries =
        denoising_queries(targets, shape, options.denoising, kClasses, tiny_noise(shape));
    return network.decode(memory, &queries, shape, /*last_only=*/false);
  }

  millrace::Parameters parameters;
  RtDetrOptions options;
  Network network;
  Tensors by_name;
  std::vector<Target> targets = tiny_targets();
  DenoisingShape shape{3, options.denoising};
};

void expect_pairs(const Pairs& pairs, const Tensors& theirs, int first) {
  std::vector<at::Tensor> queries;
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto pair = theirs.at("pairs" + std::to_string(first + i));
    const auto by_object = std::get<1>(pair[1].sort());
    queries.push_back(pair[0].index_select(0, by_object) + i * 10);
  }
  EXPECT_TRUE(pairs.queries.equal(at::cat(queries))) << first;
}

void expect_same_forward_and_backward(const std::string& version, const Tensors& theirs,
                                      bool whole) {
  const Tiny tiny(version);
  const auto memory = tiny.encode(/*training=*/true);
  EXPECT_TRUE(tensors_close(memory.places, theirs.at("memory"), 1e-4));
  const auto output = tiny.decode(memory);
  EXPECT_TRUE(tensors_close(output.selection.logits, theirs.at("topk.logits"), 1e-4));
  const auto chosen = at::sigmoid(output.selection.box_logits);
  EXPECT_TRUE(tensors_close(chosen, theirs.at("topk.boxes"), 1e-4));
  std::vector<at::Tensor> features, logits, boxes;
  for (const auto& layer : output.layers) {
    features.push_back(layer.features);
    logits.push_back(layer.logits);
    boxes.push_back(layer.boxes);
  }
  EXPECT_TRUE(tensors_close(at::stack(features, 1), theirs.at("features"), 2e-4));
  EXPECT_TRUE(tensors_close(at::stack(logits, 1), theirs.at("logits"), 2e-4));
  EXPECT_TRUE(tensors_close(at::stack(boxes, 1), theirs.at("boxes"), 1e-4));

  const auto expect_losses = [&](const Prediction& prediction, const Pairs& pairs,
                                 const std::string& end, double divisor) {
    const auto sums = set_losses(prediction, pairs, tiny.options.loss);
    for (const auto& [name, sum] :
         {std::pair{"vfl", sums.classes}, {"bbox", sums.l1}, {"giou", sums.giou}})
      EXPECT_TRUE(
          tensors_close(sum / divisor, theirs.at("loss.loss_" + std::string(name) + end), 1e-4))
          << name << end;
  };
  const auto dn = tiny.shape.queries();
  const auto own = [&](std::size_t i) { return narrowed(output.layers[i], dn, 10); };
  const Prediction selection{output.selection.logits, chosen};
  const auto pairs = [&](const Prediction& one) {
    return match(one, tiny.targets, tiny.options.match);
  };
  // The matcher is called for the last layer, the other layers, and the query selection.
  expect_pairs(pairs(own(1)), theirs, 0);
  expect_pairs(pairs(own(0)), theirs, 2);
  expect_pairs(pairs(selection), theirs, 4);
  expect_losses(own(1), pairs(own(1)), "", 4);
  expect_losses(own(0), pairs(own(0)), "_aux_0", 4);
  expect_losses(selection, pairs(selection), "_aux_1", 4);
  for (std::size_t i = 0; i < 2; ++i)
    expect_losses(narrowed(output.layers[i], 0, dn), denoising_pairs(tiny.targets, tiny.shape),
                  "_dn_" + std::to_string(i), 8);

  at::Tensor total;
  for (const auto& [name, loss] :
       millrace::means_of(losses_of(output, tiny.targets, tiny.targets, tiny.shape, tiny.options)))
    total = total.defined() ? total + loss : loss;
  EXPECT_TRUE(tensors_close(total, theirs.at("totals")[0], 1e-5));
  total.backward();
  Values gradients(theirs.at("gradients"), whole);
  for (const auto& [name, value] : tiny.by_name)
    if (value.grad().defined()) gradients.expect(name, value.grad(), 2e-3);
  gradients.expect_end();
}

void expect_same_steps(const std::string& version, const Tensors& theirs, bool whole) {
  const Tiny tiny(version);
  const double rate = version == "v1" ? 2e-8 : 3e-7;
  Tensors velocity;
  for (int step = 0; step < kSteps; ++step) {
    at::Tensor total;
    for (const auto& [name, loss] :
         millrace::means_of(losses_of(tiny.decode(tiny.encode(/*training=*/true)), tiny.targets,
                                      tiny.targets, tiny.shape, tiny.options)))
      total = total.defined() ? total + loss : loss;
    EXPECT_TRUE(tensors_close(total, theirs.at("totals")[step], 1e-3)) << step;
    total.backward();
    const at::NoGradGuard no_grad;
    for (const auto& [name, value] : tiny.by_name) {
      if (!value.grad().defined()) continue;
      auto& sum = velocity[name];
      sum = sum.defined() ? value.grad() + kMomentum * sum : value.grad().clone();
      at::Tensor(value).sub_(rate * sum);
      at::Tensor(value).mutable_grad() = at::Tensor();
    }
  }
  Values trained(theirs.at("trained"), whole);
  for (const auto& [name, value] : tiny.by_name) trained.expect(name, value, 5e-3);
  trained.expect_end();
}

void expect_same_detections(const std::string& version, const Tensors& theirs) {
  RtDetr model(tiny_options(version), {{"star", "ring", "disc"}, 1});
  set_made_up_weights(model.parameters());
  model.parameters_changed();
  const auto batch = tiny_batch();
  const auto found = model.detect(batch);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto of = "found" + std::to_string(i) + ".";
    const auto boxes = theirs.at(of + "boxes"), scores = theirs.at(of + "scores"),
               labels = theirs.at(of + "labels");
    ASSERT_EQ(std::ssize(found[i]), scores.size(0));
    for (std::int64_t d = 0; d < scores.size(0); ++d) {
      const auto& object = found[i][static_cast<std::size_t>(d)];
      EXPECT_NEAR(object.score, scores[d].item<float>(), 1e-5);
      EXPECT_EQ(object.label, labels[d].item<std::int64_t>());
      // ours are clipped to the image
      const auto edge = [&](std::int64_t side, std::int64_t most) {
        return std::clamp<double>(boxes[d][side].item<float>(), 0, static_cast<double>(most));
      };
      EXPECT_NEAR(object.box.x1, edge(0, 3 * kWidth), 1e-4 * kWidth) << d;
      EXPECT_NEAR(object.box.y1, edge(1, 2 * kHeight), 1e-4 * kHeight) << d;
      EXPECT_NEAR(object.box.x2, edge(2, 3 * kWidth), 1e-4 * kWidth) << d;
      EXPECT_NEAR(object.box.y2, edge(3, 2 * kHeight), 1e-4 * kHeight) << d;
    }
  }
}

class TransformersParity : public ::testing::TestWithParam<std::string> {
 protected:
  const Tensors theirs_ = recorded("tests/plugins/rtdetr/recorded.safetensors", GetParam());
};

INSTANTIATE_TEST_SUITE_P(ByVersion, TransformersParity, ::testing::Values("v1", "v2"),
                         [](const auto& one) { return one.param; });

TEST_P(TransformersParity, MatchesWeightNames) {
  const Tiny tiny(GetParam());
  std::vector<std::int64_t> names;
  for (const auto& [name, value] : tiny.by_name) names.push_back(crc32(name));
  std::ranges::sort(names);
  EXPECT_TRUE(at::tensor(names, at::kLong).equal(theirs_.at("names")));
}

TEST_P(TransformersParity, MatchesLayersLossesAndGradients) {
  expect_same_forward_and_backward(GetParam(), theirs_, /*whole=*/false);
}

TEST_P(TransformersParity, MatchesTwentyTrainingSteps) {
  expect_same_steps(GetParam(), theirs_, /*whole=*/false);
}

TEST_P(TransformersParity, MatchesDetections) { expect_same_detections(GetParam(), theirs_); }

// Compares all values with the installed package.
TEST_P(TransformersParity, MatchesInstalledPythonPackage) {
  MILLRACE_NEEDS_PYTHON("transformers, torchvision, scipy, safetensors.torch");
  const Scratch scratch;
  const auto file = scratch / "whole.safetensors";
  ASSERT_EQ(millrace::testing::run_python("tests/plugins/rtdetr/transformers_rtdetr.py --whole '" +
                                          file.string() + "'"),
            0);
  const auto theirs = recorded(file, GetParam());
  expect_same_forward_and_backward(GetParam(), theirs, /*whole=*/true);
  expect_same_steps(GetParam(), theirs, /*whole=*/true);
  expect_same_detections(GetParam(), theirs);
}

}  // namespace
}  // namespace millrace::rtdetr::testing
