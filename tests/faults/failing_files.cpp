#include "tests/faults/failing_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

namespace millrace::testing {
namespace {

enum class Call { open, list, create, read, write, fsync, rename, mkdir, unlink };
constexpr const char* kCalls[] = {"open",  "list",   "open",  "read",  "write",
                                  "fsync", "rename", "mkdir", "unlink"};

/// Memory shared by a test and its child processes.
struct Seen {
  std::atomic<std::int64_t> calls{0};
  std::array<char, 1024> failed{};
};

Seen& seen() {
  static auto* const shared =
      new (::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Seen;
  return *shared;
}

// The fault to inject into this process.
std::atomic<FileFault> fault{FileFault::none};
std::int64_t fails_at = 0;
std::string below;  // with a trailing slash
std::atomic<int> torn_fd{-1};

bool can(Call call) {
  const bool writes = call == Call::create || call == Call::write || call == Call::fsync ||
                      call == Call::rename || call == Call::mkdir;
  switch (fault) {
    case FileFault::none:
      return false;
    case FileFault::enospc:
      return writes;
    case FileFault::eintr:  // the standard library does not retry its own calls
      return call != Call::mkdir && call != Call::unlink && call != Call::list;
    case FileFault::emfile:
      return call == Call::open || call == Call::list || call == Call::create;
    case FileFault::half_write:
      return call == Call::write;
    default:
      return true;
  }
}

int error_number() {
  switch (fault) {
    case FileFault::eio:
      return EIO;
    case FileFault::eintr:
      return EINTR;
    case FileFault::emfile:
      return EMFILE;
    case FileFault::estale:
      return ESTALE;
    default:
      return ENOSPC;
  }
}

/// Returns true if this call must fail, and sets errno; kills the process if the fault is `kill`.
bool fails(Call call, const char* path) {
  if (std::strncmp(path, below.c_str(), below.size()) != 0) return false;
  if (seen().calls.fetch_add(1) + 1 != fails_at) return false;
  std::snprintf(seen().failed.data(), seen().failed.size(), "%s %s", kCalls[static_cast<int>(call)],
                path);
  if (fault == FileFault::kill) ::raise(SIGKILL);
  errno = error_number();
  return true;
}

/// Returns true if a call on the file open as `fd`, or on `name` relative to `fd`, must fail.
bool fails(Call call, int fd, const char* name = nullptr) {
  if (!can(call)) return false;
  if (name && (name[0] == '/' || fd == AT_FDCWD)) return fails(call, name);
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  const int before = errno;
  const auto size = ::readlink(link.data(), path.data(), path.size() - 1);
  errno = before;
  if (size <= 0) return false;
  if (!name) return fails(call, path.data());
  return fails(call, (std::string(path.data()) + "/" + name).c_str());
}

bool fails_named(Call call, const char* path) { return can(call) && fails(call, path); }

Call opening(int flags) {
  if ((flags & O_DIRECTORY) != 0) return Call::list;
  return (flags & O_CREAT) != 0 ? Call::create : Call::open;
}

template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Writes `bytes` bytes, half of them or none, depending on the fault; `put(n)` writes the first n.
template <class Put>
ssize_t write_or_fail(int fd, std::size_t bytes, Put put) {
  if (torn_fd >= 0 && fd == torn_fd) {
    torn_fd = -1;
    errno = ENOSPC;
    return -1;
  }
  if (!fails(Call::write, fd)) return put(bytes);
  if (fault != FileFault::half_write) return -1;
  if (bytes < 2) return -1;
  torn_fd = fd;
  return put(bytes / 2);
}

}  // namespace

const char* name_of(FileFault one) {
  constexpr const char* kNames[] = {"none",   "EIO",    "ENOSPC",       "EINTR",
                                    "EMFILE", "ESTALE", "half a write", "SIGKILL"};
  return kNames[static_cast<int>(one)];
}

void fail_call(const std::filesystem::path& folder, FileFault one, std::int64_t at) {
  below = folder.string() + "/";
  fails_at = at;
  fault = one;
}

std::int64_t calls_made() { return seen().calls; }

std::string failed_call() { return seen().failed.data(); }

void forget_calls() {
  seen().calls = 0;
  seen().failed[0] = '\0';
}

}  // namespace millrace::testing

using namespace millrace::testing;  // NOLINT

extern "C" {

#define MILLRACE_OPEN(NAME)                                                       \
  int NAME(const char* path, int flags, ...) {                                    \
    static auto* const next = original<int(const char*, int, ...)>(#NAME);        \
    std::va_list more;                                                            \
    va_start(more, flags);                                                        \
    const auto mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                 \
    return fails_named(opening(flags), path) ? -1 : next(path, flags, mode);      \
  }
MILLRACE_OPEN(open)
MILLRACE_OPEN(open64)

#define MILLRACE_OPENAT(NAME)                                                          \
  int NAME(int folder, const char* path, int flags, ...) {                             \
    static auto* const next = original<int(int, const char*, int, ...)>(#NAME);        \
    std::va_list more;                                                                 \
    va_start(more, flags);                                                             \
    const auto mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;      \
    va_end(more);                                                                      \
    return fails(opening(flags), folder, path) ? -1 : next(folder, path, flags, mode); \
  }
MILLRACE_OPENAT(openat)
MILLRACE_OPENAT(openat64)

#define MILLRACE_FOPEN(NAME)                                                                 \
  FILE* NAME(const char* path, const char* mode) {                                           \
    static auto* const next = original<FILE*(const char*, const char*)>(#NAME);              \
    return fails_named(mode[0] == 'r' ? Call::open : Call::create, path) ? nullptr           \
                                                                         : next(path, mode); \
  }
MILLRACE_FOPEN(fopen)
MILLRACE_FOPEN(fopen64)

#define MILLRACE_MKOSTEMPS(NAME)                                             \
  int NAME(char* path, int suffix, int flags) {                              \
    static auto* const next = original<int(char*, int, int)>(#NAME);         \
    return fails_named(Call::create, path) ? -1 : next(path, suffix, flags); \
  }
MILLRACE_MKOSTEMPS(mkostemps)
MILLRACE_MKOSTEMPS(mkostemps64)

ssize_t read(int fd, void* into, size_t size) {
  static auto* const next = original<ssize_t(int, void*, size_t)>("read");
  return fails(Call::read, fd) ? -1 : next(fd, into, size);
}

#define MILLRACE_PREAD(NAME)                                                       \
  ssize_t NAME(int fd, void* into, size_t size, off_t offset) {                    \
    static auto* const next = original<ssize_t(int, void*, size_t, off_t)>(#NAME); \
    return fails(Call::read, fd) ? -1 : next(fd, into, size, offset);              \
  }
MILLRACE_PREAD(pread)
MILLRACE_PREAD(pread64)

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const next = original<ssize_t(int, const void*, size_t)>("write");
  return write_or_fail(fd, size, [&](size_t count) { return next(fd, bytes, count); });
}

#define MILLRACE_PWRITE(NAME)                                                                     \
  ssize_t NAME(int fd, const void* bytes, size_t size, off_t offset) {                            \
    static auto* const next = original<ssize_t(int, const void*, size_t, off_t)>(#NAME);          \
    return write_or_fail(fd, size, [&](size_t count) { return next(fd, bytes, count, offset); }); \
  }
MILLRACE_PWRITE(pwrite)
MILLRACE_PWRITE(pwrite64)

int fsync(int fd) {
  static auto* const next = original<int(int)>("fsync");
  return fails(Call::fsync, fd) ? -1 : next(fd);
}

int syncfs(int fd) {
  static auto* const next = original<int(int)>("syncfs");
  return fails(Call::fsync, fd) ? -1 : next(fd);
}

int rename(const char* from, const char* to) {
  static auto* const next = original<int(const char*, const char*)>("rename");
  return fails_named(Call::rename, to) ? -1 : next(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  static auto* const next =
      original<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return fails(Call::rename, to_folder, to) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int mkdir(const char* path, mode_t mode) {
  static auto* const next = original<int(const char*, mode_t)>("mkdir");
  return fails_named(Call::mkdir, path) ? -1 : next(path, mode);
}

int unlink(const char* path) {
  static auto* const next = original<int(const char*)>("unlink");
  return fails_named(Call::unlink, path) ? -1 : next(path);
}

int unlinkat(int folder, const char* path, int flags) {
  static auto* const next = original<int(int, const char*, int)>("unlinkat");
  return fails(Call::unlink, folder, path) ? -1 : next(folder, path, flags);
}

int remove(const char* path) {
  static auto* const next = original<int(const char*)>("remove");
  return fails_named(Call::unlink, path) ? -1 : next(path);
}

}  // extern "C"
