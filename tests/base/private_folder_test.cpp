#include "millrace/base/disk/private_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "millrace/base/errors.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

unsigned mode_of(const fs::path& folder) {
  return static_cast<unsigned>(fs::status(folder).permissions());
}

TEST(PrivateFolder, IsAccessibleToThisUserOnly) {
  const Scratch scratch;
  make_private_folder(scratch / "mine");
  EXPECT_EQ(mode_of(scratch / "mine"), 0700U);
  make_private_folder(scratch / "mine");
}

TEST(PrivateFolder, RemovesReadPermissionForOthers) {
  const Scratch scratch;
  fs::create_directory(scratch / "mine");
  fs::permissions(scratch / "mine", static_cast<fs::perms>(0755));
  make_private_folder(scratch / "mine");
  EXPECT_EQ(mode_of(scratch / "mine"), 0700U);
}

TEST(PrivateFolder, RejectsFoldersWritableByOthers) {
  const Scratch scratch;
  fs::create_directory(scratch / "open");
  for (const int mode : {0720, 0702, 0777}) {
    fs::permissions(scratch / "open", static_cast<fs::perms>(mode));
    EXPECT_THROW(make_private_folder(scratch / "open"), Error) << mode;
    EXPECT_EQ(mode_of(scratch / "open"), static_cast<unsigned>(mode));
  }
}

TEST(PrivateFolder, RejectsLinksAndFiles) {
  const Scratch scratch;
  make_private_folder(scratch / "mine");
  fs::create_symlink(scratch / "mine", scratch / "link");
  fs::create_symlink(scratch / "missing", scratch / "dangling");
  write_file_atomically(scratch / "file", "");
  for (const auto* name : {"link", "dangling", "file"})
    EXPECT_THROW(make_private_folder(scratch / name), Error) << name;
}

TEST(PrivateFolder, RejectsFolderOwnedByAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can change the owner of a folder";
  const Scratch scratch;
  make_private_folder(scratch / "other");
  ASSERT_EQ(::chown((scratch / "other").c_str(), 54321, 54321), 0);
  EXPECT_THROW(make_private_folder(scratch / "other"), Error);
}

}  // namespace
}  // namespace millrace::testing
