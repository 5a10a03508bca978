// `style` has the same effect as setting its switches one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "millrace/models/maskrcnn/options.h"

namespace millrace::testing {
namespace {

/// Returns the value of every option of a [model] table as TOML.
std::map<std::string, std::string> settings(const std::string& table) {
  auto options = read_options<MaskRcnnOptions>(parse_config(table, "test"));
  Options described;
  options.describe(described);
  std::map<std::string, std::string> values;
  for (const auto& entry : described.entries())
    values[entry.name] = value_text(Options::value(entry));
  values.erase("style");
  return values;
}

/// The switches of style = "torchvision", as listed in docs/determinism.md.
const std::map<std::string, std::string> kSwitches = {
    {"pixel_order", "\"rgb\""},
    {"pixel_mean", "[123.675, 116.28, 103.53]"},
    {"pixel_std", "[58.395, 57.12, 57.375]"},
    {"backbone.stride_in_1x1", "false"},
    {"anchors.rounding", "\"rounded\""},
    {"anchors.order", "\"ratio\""},
    {"anchors.stride", "\"grid\""},
    {"rpn.smooth_l1_beta", "0.1111111111111111"},
    {"rpn.loss_normalizer", "\"sampled\""},
    {"rpn.post_nms_top_n_train", "2000"},
    {"rpn.rank_by", "\"probability\""},
    {"rpn.min_size", "0.001"},
    {"box.smooth_l1_beta", "0.1111111111111111"},
    {"roi.sampling_ratio", "2"},
    {"roi.aligned", "false"},
    {"roi.level_eps", "0.0"},
    {"roi.level_eps_after_log", "1e-06"},
    {"background", "\"first\""},
    {"mask.init_std", "0.0"},
    {"mask.target", "\"soft\""},
    {"mask.paste", "\"padded\""},
    {"test.min_size", "0.01"},
};

std::string line(const std::pair<const std::string, std::string>& setting) {
  return setting.first + " = " + setting.second + "\n";
}

TEST(Style, MatchesSwitchesSetOneByOne) {
  std::string one_by_one = "style = \"detectron2\"\n";
  for (const auto& each : kSwitches) one_by_one += line(each);
  EXPECT_EQ(settings(one_by_one), settings("style = \"torchvision\""));
}

TEST(Style, SetsOneOptionPerSwitch) {
  const auto plain = settings("");
  EXPECT_EQ(settings("style = \"detectron2\""), plain);
  for (const auto& each : kSwitches) {
    const auto changed = settings(line(each));
    auto expected = plain;
    expected[each.first] = changed.at(each.first);
    EXPECT_EQ(changed, expected) << each.first;
    EXPECT_NE(changed.at(each.first), plain.at(each.first)) << each.first;
  }
}

TEST(Style, IsOverriddenBySwitch) {
  const auto mixed = settings("style = \"torchvision\"\nroi.aligned = true\nnorm_eps = 0.0");
  auto expected = settings("style = \"torchvision\"");
  expected["roi.aligned"] = "true";
  expected["norm_eps"] = mixed.at("norm_eps");
  EXPECT_EQ(mixed, expected);
  EXPECT_NE(mixed.at("norm_eps"), settings("").at("norm_eps"));
}

}  // namespace
}  // namespace millrace::testing
