#include "millrace/tools/data/advice/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace millrace::advice {
namespace {

std::string quoted(const std::string& word) { return '"' + word + '"'; }

std::string lower_case_of(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// "ResNet-18" of "resnet18".
std::string title_of(const std::string& backbone) {
  return backbone.starts_with("resnet") ? "ResNet-" + backbone.substr(6) : backbone;
}

/// How the code base of the weights prepares pixels.
void add_pixels(const WeightFacts& weights, Network& network) {
  auto& lines = network.model;
  if (weights.scheme == "tensorpack") {
    lines.push_back({"pixel_order", quoted("bgr"), "as tensorpack's weights want their pixels"});
    lines.push_back({"pixel_mean", "[103.53, 116.28, 123.675]", "subtracted from each channel"});
    lines.push_back({"pixel_std", "[57.375, 57.12, 58.395]", "each channel is divided by it"});
  } else if (weights.scheme == "torchvision" || weights.scheme == "torchvision-2019" ||
             weights.scheme == "resnet") {
    lines.push_back(
        {"style", quoted("torchvision"), "pixels and numbers as these weights want them"});
    if (weights.scheme == "torchvision-2019" && weights.detects)
      lines.push_back({"norm_eps", "0", "as the detectors published in 2019 were trained"});
  } else {
    lines.push_back(
        {"style", quoted("detectron2"), "pixels and numbers as these weights want them"});
  }
}

/// Whether the bottlenecks of these weights stride where the style's do not.
void add_stride(const WeightFacts& weights, Network& network) {
  if (weights.backbone == "resnet18" || weights.backbone == "resnet34") return;
  const bool msra = lower_case_of(weights.file).find("msra") != std::string::npos;
  const bool in_1x1 = weights.scheme == "tensorpack" ? msra : !weights.group_norm;
  if (weights.scheme == "tensorpack" || weights.scheme.starts_with("caffe2") ||
      weights.scheme == "detectron2")
    network.backbone.push_back(
        {"stride_in_1x1", in_1x1 ? "true" : "false", "where the blocks of these weights stride"});
}

}  // namespace

Network network_from(const WeightFacts& weights, const Machine& machine) {
  Network network;
  network.start = weights.detects ? Start::detector : Start::backbone;
  network.what = title_of(weights.backbone);
  if (!weights.type.empty()) {
    network.start = Start::detector;
    network.is_given = true;
    network.model.push_back({"weights", quoted(weights.file), "rows of classes are taken by name"});
    for (const auto& [key, value] : weights.options)
      network.given.push_back({key, value, "as these weights were trained"});
    return network;
  }
  network.model.push_back(
      {"weights", quoted(weights.file),
       weights.detects ? "a trained detector; its classes are replaced" : "trained on ImageNet"});
  add_pixels(weights, network);
  network.backbone.push_back({"type", quoted(weights.backbone), "as the weights"});
  if (weights.width != 64)
    network.backbone.push_back(
        {"width", fmt::format("{}", weights.width), "channels of its first stage, as the weights"});
  if (weights.group_norm) network.backbone.push_back({"norm", quoted("gn"), "as the weights"});
  add_stride(weights, network);
  const bool small = !machine.gpu;
  network.backbone.push_back({"freeze_at", small ? "1" : "2",
                              small ? "the stem is not trained" : "stem and C2 are not trained"});
  if (weights.pyramid > 0 && weights.pyramid != 256)
    network.pyramid.push_back(
        {"out_channels", fmt::format("{}", weights.pyramid), "channels, as the weights"});
  else if (weights.pyramid == 0 && small)
    network.pyramid.push_back({"out_channels", "128", "channels of P2 to P6; 256 is published"});
  return network;
}

Network network_from_nothing(const Machine& machine) {
  Network network;
  network.what = "ResNet-18";
  network.model = {
      {"weights", quoted(""), "random values: see the top of this file"},
      {"pixel_order", quoted("bgr"), "said with the two below, which are in this order"},
      {"pixel_mean", "[103.53, 116.28, 123.675]", "subtracted from each channel"},
      {"pixel_std", "[57.375, 57.12, 58.395]", "each channel is divided by it"}};
  network.backbone = {
      {"type", quoted("resnet18"), "small: a large one needs weights, or very many images"},
      {"width", machine.gpu ? "64" : "32", "channels of its first stage; 64 is published"},
      {"norm", quoted("gn"), "learns from random values with any batch"},
      {"freeze_at", "0", "nothing is frozen"}};
  network.pyramid = {{"out_channels", machine.gpu ? "128" : "64", "channels of P2 to P6"},
                     {"norm", quoted("gn"), "as the backbone"}};
  return network;
}

std::vector<std::string> suitable_weights(std::vector<std::string> names, const Machine& machine) {
  const auto rank = [&](const std::string& name) {
    const auto text = lower_case_of(name);
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
