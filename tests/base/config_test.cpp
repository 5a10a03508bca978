#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/errors.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "nothing was thrown";
}

class ConfigFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        ("config-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(ConfigFiles, InheritsFromABaseAndKeepsWhereEachValueCameFrom) {
  write("base.toml", "[train]\nseed = 1\nepochs = 12\n");
  const auto file = write("own.toml", "base = \"base.toml\"\n[train]\nepochs = 24\n");

  const auto config =
      load_config(file, std::vector<std::string>{"train.seed=7", "model.name=retinanet"});

  const auto& train = config.section("train");
  EXPECT_EQ(std::get<std::int64_t>(train.find("epochs")->data), 24);
  EXPECT_THAT(train.find("epochs")->origin.text(), HasSubstr("own.toml:3:10"));
  EXPECT_EQ(std::get<std::int64_t>(train.find("seed")->data), 7);
  EXPECT_EQ(train.find("seed")->origin.text(), "--set train.seed");
  EXPECT_EQ(std::get<std::string>(config.section("model").find("name")->data), "retinanet");
}

TEST_F(ConfigFiles, RefusesACircleOfBases) {
  write("a.toml", "base = \"b.toml\"\n");
  const auto file = write("b.toml", "base = \"a.toml\"\n");
  EXPECT_THAT(message_of([&] { load_config(file); }), HasSubstr("inherits from itself"));
}

TEST(Config, SaysLineAndColumnOfASyntaxError) {
  EXPECT_THAT(message_of([] { parse_config("[data]\nroot = \n", "my.toml"); }),
              HasSubstr("my.toml:2:"));
}

TEST(Config, RefusesAnOverrideWithoutAKey) {
  std::ofstream(::testing::TempDir() + "/empty.toml") << "";
  for (const auto* text : {"=1", "train.seed", ".a=1", "a..b=1"})
    EXPECT_THAT(message_of([&] {
                  load_config(::testing::TempDir() + "/empty.toml", std::vector<std::string>{text});
                }),
                HasSubstr("--set"))
        << text;
}

TEST(Config, PrintsTomlThatReadsBackEqual) {
  const std::string text =
      "a = 1\nb = 0.1\nc = \"x \\\"y\\\" \\n\"\nd = [1, 2]\n[t]\ne = true\n[[t.list]]\nf = "
      "1e-5\n[[t.list]]\nf = 2.0\n";
  const auto once = to_toml(parse_config(text, "a"));
  EXPECT_EQ(once, to_toml(parse_config(once, "b")));
  EXPECT_THAT(once, HasSubstr("[[t.list]]\nf = 1e-05\n"));
}

TEST(Config, MissingFileIsAnErrorWithItsName) {
  EXPECT_THAT(message_of([] { load_config("no/such.toml"); }), HasSubstr("no/such.toml"));
}

}  // namespace
}  // namespace millrace
