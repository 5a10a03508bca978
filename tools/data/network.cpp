#include "millrace/tools/data/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/config.h"
#include "millrace/base/text.h"

namespace millrace::advice {
namespace {

/// Returns "ResNet-18" for "resnet18".
std::string title_of(const std::string& backbone) {
  return backbone.starts_with("resnet") ? "ResNet-" + backbone.substr(6) : backbone;
}

/// Adds the pixel preprocessing of the weights' code base.
void add_pixels(const WeightFacts& weights, std::vector<Choice>& choices) {
  if (weights.scheme == "tensorpack") {
    choices.push_back({"model.pixel_order", toml_text("bgr"), "as in tensorpack's weights"});
    choices.push_back({"model.pixel_mean", "[103.53, 116.28, 123.675]", "mean of each channel"});
    choices.push_back(
        {"model.pixel_std", "[57.375, 57.12, 58.395]", "standard deviation of each channel"});
    return;
  }
  const bool torchvision = weights.scheme.starts_with("torchvision") || weights.scheme == "resnet";
  choices.push_back({"model.style", toml_text(torchvision ? "torchvision" : "detectron2"),
                     "preprocessing and constants of these weights"});
  if (weights.scheme == "torchvision-2019" && weights.detects)
    choices.push_back(
        {"model.norm_eps", "0", "as in the training of the detectors published in 2019"});
}

/// Adds the position of the bottlenecks' stride, if these weights differ from the style.
void add_stride(const WeightFacts& weights, std::vector<Choice>& choices) {
  if (weights.backbone == "resnet18" || weights.backbone == "resnet34") return;
  const bool msra = lower_case(weights.file).find("msra") != std::string::npos;
  const bool in_1x1 = weights.scheme == "tensorpack" ? msra : !weights.group_norm;
  if (weights.scheme == "tensorpack" || weights.scheme.starts_with("caffe2") ||
      weights.scheme == "detectron2")
    choices.push_back({"model.backbone.stride_in_1x1", in_1x1 ? "true" : "false",
                       "position of the stride in the blocks of these weights"});
}

}  // namespace

std::string toml_text(const std::string& text) { return value_text(Config(text, Origin{})); }

Network network_from(const WeightFacts& weights, const Machine& machine) {
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  Network network{.start = weights.detects ? Start::detector : Start::backbone,
                  .what = title_of(weights.backbone)};
  auto& choices = network.choices;
  if (!weights.type.empty()) {
    network.start = Start::detector;
    network.is_given = true;
    choices.push_back({"model.weights", toml_text(weights.file),
                       "trained detector; class rows are matched by name"});
    for (const auto& [key, value] : weights.options)
      choices.push_back({"model." + key, value, "as in the training of these weights"});
    return network;
  }
  choices.push_back(
      {"model.weights", toml_text(weights.file),
       weights.detects ? "trained detector; its classes are replaced" : "trained on ImageNet"});
  add_pixels(weights, choices);
  choices.push_back({"model.backbone.type", toml_text(weights.backbone), "same as the weights"});
  if (weights.width != 64)
    choices.push_back(
        {"model.backbone.width", number(weights.width), "channels of the first stage"});
  if (weights.group_norm)
    choices.push_back({"model.backbone.norm", toml_text("gn"), "same as the weights"});
  add_stride(weights, choices);
  choices.push_back({"model.backbone.freeze_at", machine.gpu ? "2" : "1",
                     machine.gpu ? "stem and C2 are frozen" : "the stem is frozen"});
  if (weights.pyramid > 0 && weights.pyramid != 256)
    choices.push_back({"model.fpn.out_channels", number(weights.pyramid), "same as the weights"});
  else if (weights.pyramid == 0 && !machine.gpu)
    choices.push_back({"model.fpn.out_channels", "128", "channels of P2 to P6; published: 256"});
  return network;
}

Network network_from_nothing(const Machine& machine) {
  Network network{.what = "ResNet-18"};
  if (machine.gpu)
    network.choices = {{"model.backbone.width", "64", "channels of the first stage, as published"},
                       {"model.fpn.out_channels", "128", "channels of P2 to P6"}};
  return network;
}

std::vector<std::string> suitable_weights(std::vector<std::string> names, const Machine& machine) {
  const auto rank = [&](const std::string& name) {
    const auto text = lower_case(name);
    const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
    const bool small = has("r18") || has("r-18") || has("resnet18");
    const bool medium = has("r50") || has("r-50") || has("resnet50");
    if (!small && !medium) return 9;
    return (small ? (machine.gpu ? 1 : 0) : (machine.gpu ? 0 : 1));
  };
  std::erase_if(names, [&](const std::string& name) { return rank(name) == 9; });
  std::ranges::sort(names, {},
                    [&](const std::string& name) { return std::pair(rank(name), name); });
  return names;
}

}  // namespace millrace::advice
