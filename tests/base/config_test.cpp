#include "millrace/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/errors.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConfigFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    return scratch_.file(name, text).string();
  }
  /// Returns the error message of loading a file with these overrides; empty if none.
  std::string message_of(const std::string& file, std::vector<std::string> overrides = {}) const {
    return testing::message_of<ConfigError>([&] { load_config(file, overrides); });
  }
  testing::Scratch scratch_;
};

TEST_F(ConfigFiles, InheritsValuesAndKeepsOrigins) {
  write("base.toml", "[train]\nseed = 1\nepochs = 12\n");
  const auto file = write("own.toml", "base = \"base.toml\"\n[train]\nepochs = 24\n");

  const auto config =
      load_config(file, std::vector<std::string>{"train.seed=7", "model.type=retinanet"});

  const auto& train = config.section("train");
  EXPECT_EQ(std::get<std::int64_t>(train.find("epochs")->data), 24);
  EXPECT_THAT(train.find("epochs")->origin.text(), HasSubstr("own.toml:3:10"));
  EXPECT_EQ(std::get<std::int64_t>(train.find("seed")->data), 7);
  EXPECT_EQ(train.find("seed")->origin.text(), "--set train.seed");
  EXPECT_EQ(std::get<std::string>(config.section("model").find("type")->data), "retinanet");
}

TEST_F(ConfigFiles, ExtendsInheritedListWithPositionedTables) {
  write("base.toml", "stages = [{ type = 'read' }]\n");
  write("middle.toml", "base = 'base.toml'\n[[stages]]\ntype = 'flip'\nafter = 'read'\n");
  const auto file =
      write("own.toml", "base = 'middle.toml'\n[[stages]]\ntype = 'pad'\nbefore = 'flip'\n");
  const std::string inherited =
      "[{ type = \"read\" }, { type = \"flip\", after = \"read\" }, "
      "{ type = \"pad\", before = \"flip\" }";
  EXPECT_EQ(value_text(*load_config(file).find("stages")), inherited + "]");
  const std::vector<std::string> more = {"stages=[{ type = 'crop', after = 'read' }]"};
  EXPECT_EQ(value_text(*load_config(file, more).find("stages")),
            inherited + ", { type = \"crop\", after = \"read\" }]");
  const std::vector<std::string> other = {
      "stages=[{ type = 'read' }, { type = 'crop', after = 'read' }]"};
  EXPECT_EQ(value_text(*load_config(file, other).find("stages")),
            "[{ type = \"read\" }, { type = \"crop\", after = \"read\" }]");
}

TEST_F(ConfigFiles, RejectsCyclicInheritance) {
  write("a.toml", "base = \"b.toml\"\n");
  const auto file = write("b.toml", "base = \"a.toml\"\n");
  EXPECT_THAT(message_of(file), HasSubstr("inherits from itself"));
}

TEST_F(ConfigFiles, ReportsLocationOfMissingBase) {
  write("middle.toml", "\nbase = \"nosuch.toml\"\n");
  const auto file = write("own.toml", "base = \"middle.toml\"\n");
  EXPECT_THAT(message_of(file),
              AllOf(HasSubstr("middle.toml:2:8: base: "), HasSubstr("nosuch.toml")));
}

TEST_F(ConfigFiles, UnsetRemovesInheritedKeys) {
  write("base.toml", "[callbacks.pictures]\nevery = '1 step'\n[train]\nseed = 1\nepochs = 12\n");
  const auto file = write("own.toml",
                          "base = 'base.toml'\nunset = ['callbacks.pictures', 'train.seed']\n"
                          "[train]\nepochs = 2\n");
  EXPECT_EQ(to_toml(load_config(file)),
            to_toml(parse_config("callbacks = {}\n[train]\nepochs = 2\n", "")));

  const std::vector<std::string> overrides = {"unset=[\"train\"]", "train.seed=3"};
  EXPECT_EQ(to_toml(load_config(file, overrides)),
            to_toml(parse_config("callbacks = {}\n[train]\nseed = 3\n", "")));
}

TEST_F(ConfigFiles, RejectsUnsetOfUnknownKeys) {
  write("base.toml", "[callbacks.pictures]\nevery = '1 step'\n");
  const auto complaint = [&](const std::string& unset) {
    return message_of(write("own.toml", "base = 'base.toml'\nunset = " + unset + "\n"));
  };
  EXPECT_THAT(complaint("['callbacks.picture']"),
              AllOf(HasSubstr("own.toml:2:10: "), HasSubstr("did you mean 'pictures'?")));
  EXPECT_THAT(complaint("['callbacks.pictures.every.x']"),
              AllOf(HasSubstr("'callbacks.pictures.every.x'"), HasSubstr("base.toml")));
  EXPECT_THAT(complaint("['']"), AllOf(HasSubstr("''"), HasSubstr("base.toml")));
  EXPECT_THAT(complaint("'callbacks'"),
              AllOf(HasSubstr("own.toml:2:9: unset"), HasSubstr("a list")));
  EXPECT_THAT(message_of(write("alone.toml", "unset = ['callbacks']\n")),
              AllOf(HasSubstr("alone.toml:1:9: unset"), HasSubstr("`base`")));
}

/// Returns a key of `levels` levels, such as "a.a.a" for 3.
std::string deep_key(int levels) {
  std::string key = "a";
  for (int i = 1; i < levels; ++i) key += ".a";
  return key;
}

TEST_F(ConfigFiles, RejectsExcessiveNesting) {
  const auto many = deep_key(30000), few = deep_key(60);
  const auto repeated = [](const std::string& part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
  };
  for (const auto& text :
       {many + " = 1\n", "[" + many + "]\nb = 1\n", "[[" + many + "]]\nb = 1\n",
        "x = { " + many + " = 1 }\n", "x = " + repeated("[", 30000),
        "x = " + repeated("{ a = ", 30000), "[" + few + "]\n" + few + " = 1\n",
        few + " = { " + few + " = 1 }\n", few + " = [{ " + few + " = 1 }]\n",
        "x = { s = \"\"\"a\"\"\"\", " + many + " = 1 }\n", "x = 'a#' # '\n" + many + " = 1\n"})
    EXPECT_THAT(testing::message_of<ConfigError>([&] { parse_config(text, "deep.toml"); }),
                AllOf(HasSubstr("deep.toml:"), HasSubstr("100 levels")))
        << text.substr(0, 80);
  EXPECT_THAT(message_of(write("empty.toml", ""), {many + "=1"}), HasSubstr("--set"));
}

TEST(Config, AcceptsDotsOutsideKeys) {
  std::string numbers = "x = [0.5", lines,
              text = "s = '" + deep_key(500) + "' # " + deep_key(500) + "\n";
  for (int i = 0; i < 500; ++i) {
    numbers += ", 1.5";
    lines += "a.b.c" + std::to_string(i) + " = 1.5\n";
  }
  text += numbers + "]\n" + lines + "[t." + deep_key(50) + "]\n" + deep_key(40) + " = 1\n";
  EXPECT_EQ(testing::message_of<ConfigError>([&] { parse_config(text, "flat.toml"); }), "");
}

TEST(Config, ReportsLineOfSyntaxError) {
  EXPECT_THAT(
      testing::message_of<ConfigError>([] { parse_config("[data]\nroot = \n", "my.toml"); }),
      HasSubstr("my.toml:2:"));
}

TEST_F(ConfigFiles, RejectsMalformedOverrides) {
  for (const auto* text : {"=1", "train.seed", ".a=1", "a..b=1"})
    EXPECT_THAT(message_of(write("empty.toml", ""), {text}), HasSubstr("--set")) << text;
}

TEST(Config, RoundTripsThroughToml) {
  const std::string text =
      "a = 1\nb = 0.1\nc = \"x \\\"y\\\" \\n\"\nd = [1, 2]\n[t]\ne = true\n[[t.list]]\nf = "
      "1e-5\n[[t.list]]\nf = 2.0\n";
  const auto once = to_toml(parse_config(text, "a"));
  EXPECT_EQ(once, to_toml(parse_config(once, "b")));
  const auto control = to_toml(parse_config("a = \"\\u001b\\u007f\\u0085\"", "a"));
  EXPECT_EQ(control, "a = \"\\u001b\\u007f\\u0085\"\n");
  EXPECT_THAT(once, HasSubstr("[[t.list]]\nf = 1e-05\n"));
}

TEST(Config, OmitsValuesDerivedFromOtherKeys) {
  auto table = parse_config("a = 1\nb = 2\n", "c.toml");
  table.find("b")->follows = true;
  table.find("b")->origin = {"t.c"};
  EXPECT_EQ(to_toml(table), "a = 1\n");
  EXPECT_EQ(value_text(table), "{ a = 1 }");
  EXPECT_THAT(to_toml(table, /*origins=*/true), ::testing::ContainsRegex("\n# b = 2 +# t.c\n"));
}

TEST_F(ConfigFiles, ReportsMissingFile) {
  EXPECT_THAT(message_of("no/such.toml"), HasSubstr("no/such.toml"));
}

}  // namespace
}  // namespace millrace
