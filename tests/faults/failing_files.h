// A shared library preloaded before libc that makes one chosen call on a file below a folder fail.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace::testing {

/// The error of the call.
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

/// From now on in this process, call number `at` of those below `folder` that can fail with `fault`
/// fails. Calls count from 1; 0 = none fails.
void fail_call(const std::filesystem::path& folder, FileFault fault, std::int64_t at);

/// Returns the number of such calls made by the last process that called fail_call(), this one or a
/// child.
std::int64_t calls_made();

/// Returns the call that failed, such as "write /tmp/run/metrics.jsonl"; empty if none failed.
std::string failed_call();

/// Resets the counts of the process before. To be called before fail_call() in a child.
void forget_calls();

}  // namespace millrace::testing
