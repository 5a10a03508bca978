// The first configuration has a reason above every key, is valid TOML for any names, and keeps its
// lines short.
#include "millrace/tools/data/first_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "millrace/base/config.h"

namespace millrace::advice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Draft cats() {
  Draft draft{.command = "trainer init cats --data photos",
              .file = "cats/config.toml",
              .root = "data",
              .output = "cats/runs",
              .about_root = "the images are links to photos",
              .train = {"train", 32, 211, ""},
              .val = {"val", 8, 43, ""},
              .classes = {{"cat", 120}, {"dog", 91}},
              .type = "maskrcnn",
              .max_objects = 9,
              .network = network_from_nothing({}),
              .machine = {},
              .sides = {{208, 224, 256}, 352, 480, 21, false},
              .anchors = {},
              .batch = 4,
              .plan = choose_plan(32, 4, Start::random, false)};
  return draft;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Expects every key to have a reason above it.
void expect_explained(const std::string& text) {
  std::string last;
  for (const auto& line : lines_of(text)) {
    EXPECT_LE(line.size(), 100U) << line;
    if (line.find(" = ") != std::string::npos && !line.starts_with("#") &&
        !line.starts_with("base")) {
      EXPECT_TRUE(last.starts_with("# ")) << line;
    }
    last = line;
  }
}

std::string value(const Config& config, const std::string& key) {
  const auto* found = config.find_path(key);
  return found ? value_text(*found) : "";
}

TEST(FirstConfig, ExplainsEveryKeyForAnyDetector) {
  for (const auto* type : {"maskrcnn", "fasterrcnn", "retinanet"})
    for (const bool gpu : {false, true}) {
      auto draft = cats();
      draft.type = type;
      draft.machine.gpu = gpu;
      expect_explained(config_text(draft));
      const auto config = first_config(draft);
      EXPECT_EQ(value(config, "model.type"), '"' + std::string(type) + '"');
      EXPECT_EQ(value(config, "data.classes"), "[\"cat\", \"dog\"]");
      EXPECT_EQ(value(config, "train.device"), gpu ? "\"cuda\"" : "");
      EXPECT_EQ(config_text(draft), config_text(draft));
    }
}

TEST(FirstConfig, InheritsDataIndependentKeys) {
  auto draft = cats();
  const auto own = parse_config(config_text(draft), "config.toml");
  EXPECT_EQ(value(own, "base"), "\"base.toml\"");
  EXPECT_LE(leaves(own).size(), 20U);
  EXPECT_EQ(value(own, "data.train"), "") << "inherited from the base";
  EXPECT_EQ(value(own, "model.mask.conv_dim"), "");
  EXPECT_EQ(value(first_config(draft), "model.mask.conv_dim"), "128");
  draft.train.name = "train2017";
  EXPECT_EQ(value(first_config(draft), "data.train"), "\"train2017\"");
}

TEST(FirstConfig, KeepsHeadSizesOfPretrainedDetector) {
  auto draft = cats();
  draft.network = network_from({.file = "m.pkl",
                                .scheme = "detectron2",
                                .backbone = "resnet50",
                                .pyramid = 256,
                                .detects = true},
                               {});
  EXPECT_EQ(value(first_config(draft), "model.box.fc_dim"), "");
  EXPECT_EQ(value(first_config(draft), "model.mask.conv_dim"), "");
}

TEST(FirstConfig, EscapesNames) {
  auto draft = cats();
  draft.classes = {{"a \"quoted\" \\ name", 1}, {"t\xC3\xBCr\n", 2}, {"# no comment", 3}};
  draft.root = "../a folder/with 'quotes'";
  const auto config = parse_config(config_text(draft), "test");
  EXPECT_EQ(std::get<std::string>(config.find_path("data.root")->data), draft.root);
  const auto& names = std::get<Config::Array>(config.find_path("data.classes")->data);
  for (std::size_t k = 0; k < names.size(); ++k)
    EXPECT_EQ(std::get<std::string>(names[k].data), draft.classes[k].first);
}

TEST(FirstConfig, OmitsThousandsOfClasses) {
  auto draft = cats();
  draft.classes.clear();
  for (int k = 0; k < 2000; ++k) draft.classes.emplace_back("class " + std::to_string(k), 5);
  const auto text = config_text(draft);
  expect_explained(text);
  EXPECT_EQ(parse_config(text, "test").find_path("data.classes"), nullptr);
}

TEST(FirstConfig, SuggestsWeightsIfNoneAreFound) {
  EXPECT_THAT(base_text(cats()), HasSubstr("data/weights"));
  auto draft = cats();
  draft.network =
      network_from({.file = "R18.npz", .scheme = "tensorpack", .backbone = "resnet18"}, {});
  EXPECT_THAT(base_text(draft), Not(HasSubstr("data/weights")));
}

TEST(Network, MatchesWeights) {
  const auto value_of = [](const Network& network, const std::string& key) {
    const auto found = std::ranges::find(network.choices, "model." + key, &Choice::key);
    return found == network.choices.end() ? "" : found->value;
  };
  const auto torchvision = network_from(
      {.file = "resnet50-11ad3fa6.pth", .scheme = "resnet", .backbone = "resnet50"}, {});
  EXPECT_EQ(value_of(torchvision, "style"), "\"torchvision\"");
  EXPECT_EQ(value_of(torchvision, "backbone.type"), "\"resnet50\"");
  EXPECT_EQ(torchvision.start, Start::backbone);
  const auto msra = network_from(
      {.file = "R50_C1-C4_imagenet_msra_fp16.npz", .scheme = "tensorpack", .backbone = "resnet50"},
      {});
  EXPECT_EQ(value_of(msra, "pixel_order"), "\"bgr\"");
  EXPECT_EQ(value_of(msra, "backbone.stride_in_1x1"), "true");
  const auto gn = network_from(
      {.file = "R-50-GN.pkl", .scheme = "caffe2-gn", .backbone = "resnet50", .group_norm = true},
      {});
  EXPECT_EQ(value_of(gn, "backbone.norm"), "\"gn\"");
  EXPECT_EQ(value_of(gn, "backbone.stride_in_1x1"), "false");
  const auto detector = network_from({.file = "maskrcnn_resnet50_fpn_coco.pth",
                                      .scheme = "torchvision-2019",
                                      .backbone = "resnet50",
                                      .pyramid = 256,
                                      .detects = true},
                                     {});
  EXPECT_EQ(value_of(detector, "norm_eps"), "0");
  EXPECT_EQ(detector.start, Start::detector);
}

TEST(Network, PrefersWeightsThatSuitMachine) {
  const std::vector<std::string> names = {"R-50.pkl", "resnet18-f37072fd.pth", "yolo.pth"};
  using ::testing::ElementsAre;
  EXPECT_THAT(suitable_weights(names, {}), ElementsAre("resnet18-f37072fd.pth", "R-50.pkl"));
  EXPECT_THAT(suitable_weights(names, {.gpu = true}),
              ElementsAre("R-50.pkl", "resnet18-f37072fd.pth"));
}

}  // namespace
}  // namespace millrace::advice
