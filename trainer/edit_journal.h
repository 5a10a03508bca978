// RUN/edits.jsonl: the hyper-parameters that a person has changed while a run trained
// ([callbacks.live_edit]), in the order in which they were changed.
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
  std::int64_t after_step = 0;  // it holds from the next step on
  std::string name;
  double from = 0, to = 0;
  std::string line = {};  // of the journal, with its end; empty: it has none yet
};

/// The edits of a run; none without a journal. A last line that is cut short never took effect: it
/// is removed. Throws Error.
std::vector<Edit> read_edits(const std::filesystem::path& run);

/// Writes new edits below the others, all or none, on the disk too. Throws Error.
void append_edits(const std::filesystem::path& run, std::span<const Edit> edits);

/// Replaces the journal. Throws Error.
void write_edits(const std::filesystem::path& run, std::span<const Edit> edits);

/// The last edit of each hyper-parameter before step `until`, and how it is taken back, for a
/// warning: "; edits: ..."; empty without any.
std::string edits_text(const std::filesystem::path& run, std::int64_t until);

}  // namespace millrace
