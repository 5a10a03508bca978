#include "millrace/base/disk/part_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "tests/support/scratch.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using Existing = PartFolder::Existing;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

struct PartFolders : ::testing::Test {
  const testing::Scratch scratch;
};

void make(const fs::path& folder, const std::string& text, Existing existing) {
  PartFolder part(folder, existing);
  write_file_atomically(part.path() / "text", text);
  part.publish();
}

TEST_F(PartFolders, RenameOnPublish) {
  {
    PartFolder part(scratch / "a/b/", Existing::refuse);
    write_file_atomically(part.path() / "text", "whole");
    EXPECT_FALSE(fs::exists(scratch / "a" / "b"));
    part.publish();
  }
  EXPECT_EQ(read_file(scratch / "a" / "b" / "text"), "whole");
  EXPECT_THAT(names_in(scratch / "a"), ElementsAre("b"));
}

TEST_F(PartFolders, LeaveNothingUnlessPublished) {
  { const PartFolder part(scratch / "a", Existing::replace); }
  EXPECT_THAT(names_in(scratch / "."), IsEmpty());
}

TEST_F(PartFolders, RemoveLeftoversOfKilledProcess) {
  fs::create_directories(scratch / "a.part" / "deep");
  make(scratch / "a", "whole", Existing::refuse);
  EXPECT_THAT(names_in(scratch / "."), ElementsAre("a"));
  EXPECT_THAT(names_in(scratch / "a"), ElementsAre("text"));
}

TEST_F(PartFolders, RejectExistingAndLockedFolders) {
  const auto making = std::make_unique<PartFolder>(scratch / "a", Existing::refuse);
  EXPECT_THAT([&] { PartFolder(scratch / "a", Existing::refuse); },
              ThrowsMessage<Error>(HasSubstr("in use")));
  making->publish();
  EXPECT_THAT([&] { PartFolder(scratch / "a", Existing::refuse); },
              ThrowsMessage<ConfigError>(HasSubstr("already exists")));
}

TEST_F(PartFolders, ReplaceExistingFolder) {
  make(scratch / "a", "old", Existing::replace);
  make(scratch / "a", "new", Existing::replace);
  EXPECT_EQ(read_file(scratch / "a" / "text"), "new");
  EXPECT_THAT(names_in(scratch / "."), ElementsAre("a"));
}

}  // namespace
}  // namespace millrace
