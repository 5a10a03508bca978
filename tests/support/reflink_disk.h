// A file system with shared blocks (reflinks) in an image file, mounted for this process alone.
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

/// An XFS file system in a mount namespace of this process. Use it only in a test that runs in its
/// own process: the mount disappears when the process ends.
class ReflinkDisk {
 public:
  /// Mounts an XFS file system of 320 MiB. Needs root, mkfs.xfs and a loop device; ready() returns
  /// false without them.
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

  /// Returns the number of bytes used on the file system.
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
