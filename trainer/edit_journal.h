// RUN/edits.jsonl: hyper-parameters that a user has changed while a run trained
// ([callbacks.live_edit]), in the order of the changes.
//
//   {"after_step":7,"name":"lr_factor","from":1.0,"to":0.5,"time":"2026-01-31T23:59:59Z"}
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace millrace {

struct Edit {
  std::int64_t after_step = 0;  // step after which the edit takes effect
  std::string name;
  double from = 0, to = 0;
  // Line of the edit in the journal, with the newline; empty = not written yet.
  std::string line = {};
};

/// Reads the edits of a run; empty if there is no journal. A truncated last line never took effect
/// and is removed from the file. Throws Error.
std::vector<Edit> read_edits(const std::filesystem::path& run);

/// Appends new edits to the journal, all or none, and syncs them to disk. Throws Error.
void append_edits(const std::filesystem::path& run, std::span<const Edit> edits);

/// Replaces the journal. Throws Error.
void write_edits(const std::filesystem::path& run, std::span<const Edit> edits);

/// Returns text for a warning, "; edits: ...": the last edit of each hyper-parameter before step
/// `until`, and how to withdraw it. Empty if there are no edits.
std::string edits_text(const std::filesystem::path& run, std::int64_t until);

}  // namespace millrace
