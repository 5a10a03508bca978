// Writes the events of a process to a file when the process ends or hangs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

/// Returns RUN/events/rank-0003.json, the file with the last events of a rank that can access the
/// run's folder.
std::filesystem::path events_file_in(const std::filesystem::path& run, std::int64_t rank);

/// The process that the file describes, and the conditions under which it is written.
struct LastEventsOptions {
  std::filesystem::path file;  // absolute; its folder is created on writing
  std::int64_t rank = 0;
  std::string name = {};  // "rank 3 (b)"
  std::string host = {};
  // Also write at SIGTERM, which mpirun sends to the ranks when one has failed.
  bool at_sigterm = false;
  // For a file outside the run's folder: creates a folder that only this user can access, and
  // reports each writing on standard error.
  bool is_private = false;
};

/// Sets the file of `write_last_events` for its lifetime, and writes it on a fatal signal (SIGSEGV,
/// SIGBUS, SIGABRT, SIGFPE, SIGILL) before the previous handler runs. At most one object may exist
/// at a time.
class LastEvents {
 public:
  explicit LastEvents(LastEventsOptions options);
  ~LastEvents();
  LastEvents(const LastEvents&) = delete;
};

/// Rewrites the file. Returns false if there is no LastEvents object, the file cannot be written,
/// or another thread is writing it. Thread-safe and async-signal-safe.
bool write_last_events(std::string_view why);

/// Called by the handler of a signal that asks the process to stop.
void write_last_events_at(int signal, std::string_view name);

/// Returns the file of `write_last_events`; empty = none.
std::string last_events_file();

/// Gives this thread a stack for handlers with SA_ONSTACK, until the thread ends, unless it already
/// has one. Handlers need it after a stack overflow, and when code uses the stack pointer for
/// something else: oneDNN's matrix products before 3.11.2 let it point into the heap, where the
/// kernel would overwrite data with the handler's frame (oneDNN issue 4845).
void give_signal_stack();

}  // namespace millrace
