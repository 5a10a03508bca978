#include "millrace/base/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <variant>

#include "tests/support/scratch.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

TEST(NamedPath, IsRelativeToConfigFile) {
  const Config value("../photos", {"/home/me/configs/a.toml", 3, 1});
  EXPECT_EQ(named_path(value), "/home/me/photos");
  EXPECT_EQ(named_path(Config("photos", {"configs/a.toml", 3, 1})),
            fs::current_path() / "configs/photos");
}

TEST(NamedPath, IsRelativeToCurrentFolderOtherwise) {
  for (const auto* source : {"--set data.root", "default"})
    EXPECT_EQ(named_path(Config("photos", {source, 0, 0})), fs::current_path() / "photos");
}

TEST(MakePathAbsolute, KeepsEmptyAbsoluteAndRemotePaths) {
  for (const std::string text : {"", "s3://bucket/folder", "/photos"}) {
    Config value(text, {"configs/a.toml", 3, 1});
    make_path_absolute(value);
    EXPECT_EQ(std::get<std::string>(value.data), text);
  }
}

}  // namespace
}  // namespace millrace
