// The events of a process that ends or hangs, in a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace millrace {

/// RUN/events/rank-0003.json, where a rank of a run keeps its last events if it sees the folder.
std::filesystem::path events_file_in(const std::filesystem::path& run, std::int64_t rank);

/// The process that the file describes, and when it is written without a request.
struct LastEventsOptions {
  std::filesystem::path file;  // absolute; its folder is made when it is written
  std::int64_t rank = 0;
  std::string name = {};  // "rank 3 (b)"
  std::string host = {};
  bool at_sigterm = false;  // mpirun sends it to ranks when another has failed
  bool is_private = false;  // beside others' files: a folder of this user alone is made, and each
                            // writing is told on standard error
};

/// While one exists, `write_last_events` knows where to, and is called for a signal that kills
/// (SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL); who handled that before gets it afterwards. One at a
/// time.
class LastEvents {
 public:
  explicit LastEvents(LastEventsOptions options);
  ~LastEvents();
  LastEvents(const LastEvents&) = delete;
};

/// Writes the file anew; false without one, or while another thread writes it. Any thread, and any
/// signal handler.
bool write_last_events(std::string_view why);

/// For the handler of a signal that asks to end.
void write_last_events_at(int signal, std::string_view name);

/// Where `write_last_events` writes to; empty: nowhere.
std::string last_events_file();

}  // namespace millrace
