// A shared library preloaded before libc that makes one chosen call on a file below a folder fail.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace::testing {

/// How the call fails.
enum class FileFault : int {
  none,
  eio,
  enospc,
  eintr,
  emfile,
  estale,
  half_write,  // half of the bytes are written, then the disk is full
  kill,        // SIGKILL before the call
};

const char* name_of(FileFault fault);

/// Makes one call of this process fail: number `at`, counted from 1, of the calls on files below
/// `folder` that can fail with `fault`. 0 = no call fails.
void fail_call(const std::filesystem::path& folder, FileFault fault, std::int64_t at);

/// Returns the number of such calls made by the last process that called fail_call(), this one or a
/// child.
std::int64_t calls_made();

/// Returns the call that failed, such as "write /tmp/run/metrics.jsonl"; empty if none failed.
std::string failed_call();

/// Resets the counts of the previous process. Call it before a child calls fail_call().
void forget_calls();

}  // namespace millrace::testing
