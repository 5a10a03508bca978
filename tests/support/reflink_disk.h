// A file system that shares blocks, in a file, mounted for this process alone.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include "tests/support/scratch.h"
#include "tests/support/shell.h"

namespace millrace::testing {

/// For tests that run in a process of their own: the mount leaves with it, however it ends.
class ReflinkDisk {
 public:
  /// XFS of 320 MiB. Needs root, mkfs.xfs and a loop device: see `ready`.
  ReflinkDisk() {
    const auto image = (scratch_ / "image").string(), folder = path().string();
    std::filesystem::create_directory(path());
    ready_ = ::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0 &&
             ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
             shell("truncate -s 320M " + image + " && mkfs.xfs -q -m reflink=1 " + image +
                   " && mount -o loop " + image + " " + folder);
  }
  ReflinkDisk(const ReflinkDisk&) = delete;
  ~ReflinkDisk() {
    if (ready_) ::umount2(path().c_str(), MNT_DETACH);
  }

  bool ready() const { return ready_; }
  std::filesystem::path path() const { return scratch_ / "mounted"; }

  /// Bytes that are taken on the disk.
  std::uint64_t used() const {
    ::sync();
    struct statvfs about {};
    ::statvfs(path().c_str(), &about);
    return (about.f_blocks - about.f_bfree) * about.f_frsize;
  }

 private:
  Scratch scratch_;
  bool ready_ = false;
};

}  // namespace millrace::testing
