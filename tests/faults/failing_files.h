// A shared library in front of libc: one chosen call on a file below a folder fails.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace::testing {

/// What happens to the call.
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

/// From now on, in this process: the call number `at` (from 1; 0: none) of those below `folder`
/// that can fail with `fault` does so.
void fail_call(const std::filesystem::path& folder, FileFault fault, std::int64_t at);

/// The number of such calls made by the last process that called fail_call, this one or a child.
std::int64_t calls_made();

/// The call that failed: "write /tmp/run/metrics.jsonl"; empty: none did.
std::string failed_call();

/// Before fail_call in a child: forgets the process before.
void forget_calls();

}  // namespace millrace::testing
