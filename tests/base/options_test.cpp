#include "millrace/base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/errors.h"
#include "millrace/base/registry.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct Example {
  double rate = 0.5;
  std::int64_t count = 3;
  std::vector<std::int64_t> sides = {640, 800};
  std::string mode = "skip";
  bool fast = false;
  Options::Table goals;

  void describe(Options& o) {
    o.add("rate", rate, "a fraction", {.min = 0, .max = 1});
    o.add("count", count, "how many", {.min = 1, .unit = "images"});
    o.add("sides", sides, "lengths", {.min = 1, .unit = "px"});
    o.add("mode", mode, "what to do", {"skip", "fail", "replace"});
    o.add("fast", fast, "whether to hurry");
    o.add("goals", goals, "what to reach", {"box/AP", "mask/AP"}, {.min = 0, .max = 1});
  }
};

/// Returns the error message of reading a `T` from this TOML; empty if none.
template <class T = Example>
std::string message_of(const std::string& toml) {
  return testing::message_of<ConfigError>(
      [&] { read_options<T>(parse_config(toml, "c.toml"), {"other"}); });
}

TEST(Options, OverrideDefaults) {
  const auto example =
      read_options<Example>(parse_config("rate = 1\nsides = 320\nmode = \"fail\"", "c.toml"));
  EXPECT_EQ(example.rate, 1.0);
  EXPECT_EQ(example.count, 3);
  EXPECT_EQ(example.sides, (std::vector<std::int64_t>{320}));
  EXPECT_EQ(example.mode, "fail");
}

TEST(Options, ReadTableOfNumbers) {
  const auto example = read_options<Example>(
      parse_config("goals = { \"mask/AP\" = 1, \"box/AP\" = 0.25 }", "c.toml"));
  EXPECT_THAT(example.goals, UnorderedElementsAre(Pair("box/AP", 0.25), Pair("mask/AP", 1.0)));
  EXPECT_THAT(message_of("goals = 0.5"),
              AllOf(HasSubstr("c.toml:1:9: goals "), HasSubstr("a table")));
  EXPECT_THAT(message_of("[goals]\n\"box/AQ\" = 1"),
              AllOf(HasSubstr("c.toml:2:12"), HasSubstr("did you mean 'box/AP'")));
  EXPECT_THAT(message_of("[goals]\nloss = 1"), HasSubstr("known: box/AP, mask/AP"));
  EXPECT_THAT(message_of("[goals]\n\"box/AP\" = 1.5"), HasSubstr("out of range (0 .. 1)"));
  EXPECT_THAT(message_of("[goals]\n\"box/AP\" = \"high\""), HasSubstr("takes a number"));
}

TEST(Options, ReportLocationAndNearestKey) {
  EXPECT_THAT(message_of("\ncuont = 2"),
              AllOf(HasSubstr("c.toml:2:9"), HasSubstr("did you mean 'count'")));
  EXPECT_THAT(message_of("count = 0"), AllOf(HasSubstr("out of range"), HasSubstr(">= 1 images")));
  EXPECT_THAT(message_of("rate = nan"), HasSubstr("out of range"));
  EXPECT_THAT(message_of("count = 1.5"), HasSubstr("takes an integer"));
  EXPECT_THAT(message_of("mode = \"fial\""), HasSubstr("did you mean 'fail'"));
  EXPECT_THAT(message_of("sides = [1, \"a\"]"), HasSubstr("an integer, not a string"));
  EXPECT_THAT(message_of("fast = 1"), HasSubstr("true or false"));
}

TEST(Options, RejectInfinity) {
  EXPECT_THAT(message_of("rate = inf"),
              AllOf(HasSubstr("c.toml:1:8"), HasSubstr("rate = inf"), Not(HasSubstr("e+308"))));
}

TEST(Options, QuoteStringsInErrors) {
  struct Place {
    std::string root = "data/sample";
    void describe(Options& o) { o.add("root", root, "folder"); }
  };
  EXPECT_THAT(
      message_of<Place>("root = 2017"),
      AllOf(HasSubstr("c.toml:1:8"), HasSubstr("\"data/sample\""), Not(HasSubstr("--set"))));
  Config table;
  apply_overrides(table, std::vector<std::string>{"root=2017"});
  EXPECT_THAT(([&] { read_options<Place>(table); }),
              ThrowsMessage<ConfigError>(HasSubstr("--set root='\"data/sample\"'")));
}

TEST(Options, RejectListBelowMinimumLength) {
  struct Sides {
    std::vector<std::int64_t> sides = {800};
    void describe(Options& o) { o.add("sides", sides, "lengths", {.min = 1, .least = 1}); }
  };
  EXPECT_EQ(read_options<Sides>(parse_config("sides = 3", "c.toml")).sides.size(), 1U);
  EXPECT_THAT(message_of<Sides>("sides = []"),
              AllOf(HasSubstr("c.toml:1:9: sides "), HasSubstr("1 value"), HasSubstr("[800]")));
}

TEST(Options, RejectIntegersBeyond32Bits) {
  EXPECT_THAT(message_of("count = 2147483648"), HasSubstr("count = 2147483648 "));
  EXPECT_THAT(message_of("sides = [1, 9223372036854775807]"), HasSubstr("out of range"));
  EXPECT_THAT(message_of("count = -9223372036854775807"),
              AllOf(HasSubstr("count = -9223372036854775807 "), HasSubstr("(>= 1 images)")));
}

enum class Way { left, right, up };
std::vector<std::string> value_names(Way) { return {"left", "right", "up"}; }

struct Turn {
  Way way = Way::right;
  double speed = 1;
  void describe(Options& o) {
    o.add("way", way, "direction").affects(Affects::evaluation | Affects::run);
    o.add("speed", speed, "speed");
  }
};

TEST(Options, ReadEnumsByName) {
  EXPECT_EQ(read_options<Turn>(Config{}).way, Way::right);
  EXPECT_EQ(read_options<Turn>(parse_config("way = 'up'", "c.toml")).way, Way::up);
  EXPECT_EQ(help_of<Turn>()[0].legal, "left | right | up");
  Config table;
  complete_options<Turn>(table);
  EXPECT_EQ(to_toml(table), "way = \"right\"\nspeed = 1.0\n");
  EXPECT_THAT(message_of<Turn>("way = 'rihgt'"),
              AllOf(HasSubstr("c.toml:1:7: way = \"rihgt\" "), HasSubstr("left | right | up"),
                    HasSubstr("'right'?")));
  EXPECT_THAT(message_of<Turn>("way = 1"), HasSubstr("a string, not an integer"));
}

TEST(Options, AffectBatchesByDefault) {
  Turn turn;
  Options options;
  turn.describe(options);
  const auto& entries = options.entries();
  EXPECT_TRUE(includes(entries[0].affected, Affects::run));
  EXPECT_TRUE(includes(entries[0].affected, Affects::evaluation));
  EXPECT_FALSE(includes(entries[0].affected, Affects::batches));
  EXPECT_EQ(entries[1].affected, Affects::batches);
}

TEST(Options, RejectUnusedKeysUnlessDefault) {
  const auto complaint = [](const std::string& toml) {
    return testing::message_of<ConfigError>([&] {
      refuse_unused<Example>(parse_config(toml, "c.toml"), {"rate", "sides"}, "on Sundays");
    });
  };
  EXPECT_EQ(complaint("rate = 0.5\nsides = [640, 800]\ncount = 7"), "");
  EXPECT_THAT(complaint("\nrate = 1"),
              AllOf(HasSubstr("c.toml:2:8: rate "), HasSubstr(" on Sundays")));
  EXPECT_THAT(complaint("sides = 640"), HasSubstr("c.toml:1:9: sides "));
}

TEST(Options, RoundTripWithDefaultsFilledIn) {
  Config table = parse_config("count = 9\n[goals]\n\"box/AP\" = 0.125", "c.toml");
  complete_options<Example>(table);
  const auto again = read_options<Example>(parse_config(to_toml(table), "again.toml"));
  EXPECT_EQ(again.count, 9);
  EXPECT_EQ(again.sides, Example{}.sides);
  EXPECT_THAT(again.goals, ElementsAre(Pair("box/AP", 0.125)));
  EXPECT_EQ(table.find("rate")->origin.text(), "default");
}

/// Options in nested tables, and a duration.
struct Nested {
  double threshold = 0.7;
  std::string kind = "resnet50", norm = "bn";
  Duration patience = {300};
  void describe(Options& o) {
    o.add("rpn.nms_thresh", threshold, "IoU", {.min = 0, .max = 1});
    o.add("backbone.type", kind, "the network");
    o.add("backbone.norm", norm, "its norm");
    o.add("patience", patience, "how long to wait", {.min = 1, .max = 7200});
  }
};

TEST(Options, ReadDottedNamesFromTables) {
  for (const auto* toml : {"[rpn]\nnms_thresh = 0.5\n[backbone]\ntype = 'r18'",
                           "rpn.nms_thresh = 0.5\nbackbone.type = 'r18'",
                           "rpn = { nms_thresh = 0.5 }\nbackbone = { type = 'r18' }"}) {
    Config table = parse_config(toml, "c.toml");
    const auto read = read_options<Nested>(table);
    EXPECT_EQ(read.threshold, 0.5);
    EXPECT_EQ(read.kind, "r18");
    EXPECT_EQ(read.norm, "bn");
    complete_options<Nested>(table);
    EXPECT_EQ(value_text(*table.find_path("backbone.norm")), "\"bn\"");
    EXPECT_EQ(value_text(*table.find_path("rpn.nms_thresh")), "0.5");
  }
  EXPECT_THAT(message_of<Nested>("[rpn]\nnms_thresh = 2"),
              AllOf(HasSubstr("c.toml:2:14: rpn.nms_thresh = 2 "), HasSubstr("(0 .. 1)")));
  EXPECT_THAT(message_of<Nested>("[rpn]\nnms_tresh = 0.5"),
              AllOf(HasSubstr("c.toml:2:13: unknown key 'rpn.nms_tresh'"),
                    HasSubstr("did you mean 'rpn.nms_thresh'")));
  EXPECT_THAT(message_of<Nested>("rpn = 3"),
              AllOf(HasSubstr("c.toml:1:7: rpn "), HasSubstr("a table, not an integer")));
  EXPECT_THAT(message_of<Nested>("'rpn.nms_thresh' = 0.5"), HasSubstr("unknown key"));
  EXPECT_THAT(message_of<Nested>("rpn.other = 1"),
              AllOf(HasSubstr("unknown key 'rpn.other'"), HasSubstr("`unset`")));
}

TEST(Options, RejectDurationsWithoutUnit) {
  const auto patience = [](const std::string& value) {
    return read_options<Nested>(parse_config("patience = " + value, "c.toml")).patience.seconds;
  };
  EXPECT_EQ(patience("'5 minutes'"), 300);
  EXPECT_EQ(patience("'1 second'"), 1);
  EXPECT_EQ(patience("'1.5 hours'"), 5400);
  EXPECT_THAT(message_of<Nested>("patience = 600"),
              AllOf(HasSubstr("c.toml:1:12: patience = 600 "), HasSubstr("duration"),
                    HasSubstr("\"600 seconds\"")));
  for (const auto* wrong :
       {"'5'", "'5 steps'", "'minutes'", "'-5 minutes'", "'1 minute more'", "true"})
    EXPECT_THAT(message_of<Nested>(std::string("patience = ") + wrong), HasSubstr("duration"))
        << wrong;
  EXPECT_THAT(message_of<Nested>("patience = '3 hours'"), HasSubstr("(1 .. 7200 seconds)"));
  Config table;
  complete_options<Nested>(table);
  EXPECT_EQ(value_text(*table.find("patience")), "\"5 minutes\"");
}

struct Layer {
  std::int64_t width = 64;
  std::string norm = "bn", color = "red";
  void describe(Options& o) {
    o.add("width", width, "channels").affects(WeightEffect::tensors);
    o.add("color", color, "of the log");
    o.add("norm", norm, "kind").affects(WeightEffect::meaning, {"bn", "sync_bn"});
  }
};

TEST(Options, ListThoseThatAffectWeights) {
  Registry<int> registry("layer");
  registry.add<Layer>("plain", "a layer", 1);
  const auto found = registry.at("plain").weight_options();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "width");
  EXPECT_EQ(found[0].effect, WeightEffect::tensors);
  EXPECT_EQ(found[1].name, "norm");
  EXPECT_EQ(found[1].effect, WeightEffect::meaning);
  EXPECT_THAT(found[1].alike, ElementsAre("bn", "sync_bn"));
}

TEST(Registry, RejectsDuplicatesAndSuggestsNearestName) {
  Registry<int> registry("stage");
  registry.add<Example>("flip", "mirrors", 1);
  EXPECT_THROW(registry.add<Example>("flip", "again", 2), Error);
  EXPECT_THAT([&] { registry.at("fllip"); },
              ::testing::ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("unknown stage 'fllip'"), HasSubstr("'flip'?"))));
}

}  // namespace
}  // namespace millrace
