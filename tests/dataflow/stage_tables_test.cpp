// Stage tables: the options that they inherit from [data], and rules that concern several stages.
#include "millrace/dataflow/stage_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/sources/detection_sources.h"
#include "tests/dataflow/tiny_coco.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

std::vector<std::string> texts(const std::vector<Config>& tables) {
  std::vector<std::string> all;
  for (const auto& table : tables) all.push_back(to_toml(table, /*origins=*/true));
  return all;
}

TEST(StageTables, InheritFromExistingKeys) {
  const auto followed = [](const auto& registry) {
    std::size_t count = 0;
    for (const auto& [name, entry] : registry.entries())
      for (const auto& option : entry.help())
        if (!option.follows.empty()) {
          EXPECT_NO_THROW(data_value(option.follows, {})) << name << "." << option.name;
          ++count;
        }
    return count;
  };
  EXPECT_EQ(followed(detection_stages()), 12U);
  EXPECT_EQ(followed(detection_sources()), 4U);
  EXPECT_THROW(data_value("data.nothing", {}), Error);
}

TEST(StageTables, UpdateInheritedOptionsOnly) {
  DataOptions data;
  const auto tables = complete_stages(data, {});
  EXPECT_EQ(tables.size(), 6U);
  EXPECT_EQ(texts(complete_stages(data, tables)), texts(tables));
  std::vector<Config> again;  // read from TOML without the inherited options
  for (const auto& table : tables) again.push_back(parse_config(to_toml(table), "again.toml"));
  again = complete_stages(data, again);
  for (std::size_t i = 0; i < tables.size(); ++i) EXPECT_EQ(to_toml(again[i]), to_toml(tables[i]));
  data.short_side = {320, 400};
  data.aspect_grouping = false;
  EXPECT_NE(texts(complete_stages(data, tables)), texts(tables));
  EXPECT_EQ(texts(complete_stages(data, tables)), texts(complete_stages(data, {})));
}

TEST(StageTables, KeepExplicitValues) {
  DataOptions data;
  data.flip = 0.25;
  const auto tables = complete_stages(
      data, pipeline("{ type = 'flip', probability = 0.75 }, { type = 'resize_shortest_edge' }, "));
  const auto& own = *tables[2].find("probability");
  EXPECT_FALSE(own.follows);
  EXPECT_EQ(value_text(own), "0.75");
  EXPECT_TRUE(tables[3].find("short_side")->follows);
}

TEST(StageTables, DecodeFullSizeBeforeCrop) {
  const auto decoded = [](const std::string& stages) {
    DataOptions data;
    data.short_side = {100, 200};
    return options_of<Decode>(complete_stages(data, pipeline(stages))[1])->short_side;
  };
  EXPECT_EQ(decoded("{ type = 'resize_shortest_edge' }, "), 200);
  EXPECT_EQ(decoded("{ type = 'flip' }, { type = 'resize_shortest_edge', short_side = 50 }, "), 50);
  EXPECT_EQ(decoded("{ type = 'random_crop' }, { type = 'resize_shortest_edge' }, "), 0);
  EXPECT_EQ(decoded(""), 0);
}

TEST(StageTables, RejectTooSmallPadShapes) {
  const auto complaint = [](const std::string& data_toml, std::vector<Config> stages) {
    const auto table = parse_config(data_toml, "data.toml");
    return message_of<ConfigError>(
        [&] { settle_stages(read_options<DataOptions>(table), table, stages); });
  };
  const std::string narrow = "pad_shapes = ['900x640']";
  EXPECT_THAT(complaint(narrow, {}),
              AllOf(HasSubstr("data.toml:1:14: pad_shapes"), HasSubstr("800 pixels")));
  EXPECT_EQ(complaint(narrow, pipeline("{ type = 'resize_shortest_edge', short_side = 600 }, ")),
            "");
  auto own = pipeline("{ type = 'resize_shortest_edge' }, ");
  own.back() = parse_config("type = 'pad'\nshapes = ['900x640']", "pad.toml");
  EXPECT_THAT(complaint("", own), HasSubstr("pad.toml:2:10: shapes "));
  const std::string wide = "pad_shapes = ['1400x1400']", zoom = "{ type = 'zoom_out' }, ";
  const std::string resize = "{ type = 'resize_shortest_edge' }, ";
  EXPECT_EQ(complaint(wide, pipeline(zoom + resize)), "");
  EXPECT_THAT(
      complaint(wide, pipeline(resize + zoom)),
      AllOf(HasSubstr("data.toml:1:14: pad_shapes"), HasSubstr("3200"), HasSubstr("zoom_out")));
  EXPECT_EQ(complaint(wide, pipeline(resize + "{ type = 'zoom_out', probability = 0 }, ")), "");
}

/// Returns the types of the stages that this TOML of [[data.stages]] declares, in order.
std::vector<std::string> types_of(const std::string& toml) {
  const auto config = parse_config(toml, "a.toml");
  std::vector<std::string> types;
  for (const auto& table :
       complete_stages({}, std::get<Config::Array>(config.find("stages")->data)))
    types.push_back(component_type(table, "stage"));
  return types;
}

TEST(StageTables, InsertStagesIntoDefaultList) {
  EXPECT_THAT(types_of("[[stages]]\ntype = 'random_crop'\nafter = 'decode'\n"
                       "[[stages]]\ntype = 'affine'\nafter = 'decode'\n"
                       "[[stages]]\ntype = 'hsv_shift'\nbefore = 'affine'\n"
                       "[[stages]]\ntype = 'dump'\nafter = 'pad'\nfolder = 'seen'\n"),
              ElementsAre("read", "decode", "random_crop", "hsv_shift", "affine", "flip",
                          "resize_shortest_edge", "group_by_aspect_ratio", "pad", "dump"));
}

TEST(StageTables, InsertStagesIntoGivenList) {
  EXPECT_THAT(types_of("stages = [{ type = 'affine', before = 'pad' }, { type = 'read' }, "
                       "{ type = 'decode' }, { type = 'pad' }]"),
              ElementsAre("read", "decode", "affine", "pad"));
}

TEST(StageTables, RejectInvalidPositions) {
  const auto complaint = [](const std::string& place) {
    return message_of<ConfigError>(
        [&] { types_of("[[stages]]\ntype = 'affine'\n" + place + "\n"); });
  };
  EXPECT_THAT(complaint("after = 'decod'"),
              AllOf(StartsWith("a.toml:3:9: after"), HasSubstr("did you mean 'decode'?"),
                    HasSubstr("resize_shortest_edge")));
  EXPECT_THAT(complaint("before = 'flip'\nafter = 'decode'"), StartsWith("a.toml:3:10: before"));
  EXPECT_THAT(complaint("after = 3"), StartsWith("a.toml:3:9: after"));
  EXPECT_THAT(complaint("after = 'decode'\n[[stages]]\ntype = 'affine'\nafter = 'flip'\n"
                        "[[stages]]\ntype = 'hsv_shift'\nbefore = 'affine'"),
              AllOf(StartsWith("a.toml:9:10: before"), HasSubstr("a.toml:1:1, a.toml:4:1")));
}

}  // namespace
}  // namespace millrace
