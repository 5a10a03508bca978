// Append-only files of a run. A resumed run first truncates them to their size at its checkpoint.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

class TrainState;

/// Appends all bytes in one write, so that the output of concurrent writers does not interleave. If
/// it fails, no bytes are left in the file. Throws Error.
void append_to(const std::filesystem::path& file, std::string_view bytes);

/// Truncates a file that is longer than `size` bytes. Throws Error.
void cut_file(const std::filesystem::path& file, std::uintmax_t size);

/// A file that a callback appends to. Every line is in the file once, even if the process is killed
/// and resumed: a resumed training removes what was written after its checkpoint and writes it
/// again. The callback owns the object and stores its state in checkpoints (see SavesState):
///
///   before_train:  file_.open(state, state.folder / "best.txt");
///   any hook:      file_.append("step 5: 0.31\n");
///   save_state:    return {{"file", file_.state()}, ...};
///   load_state:    file_.load(saved.at("file"));
class AppendedFile {
 public:
  /// State of the file when a checkpoint was taken.
  struct Mark {
    std::string file;  // file name; empty = the file did not exist
    std::uintmax_t bytes = 0;
  };

  /// Opens `file` for appending. First truncates what was written after the checkpoint: everything
  /// in a new training, nothing if the checkpoint has no state of this callback. Throws Error.
  void open(const TrainState& state, std::filesystem::path file);
  bool is_open() const { return !file_.empty(); }

  /// Removes provisional bytes and appends `bytes`. Throws Error.
  void append(std::string_view bytes);

  /// Appends bytes that the next append() or a resumed training removes again. Throws Error.
  void append_provisionally(std::string_view bytes);
  bool has_provisional() const { return lasting_.has_value(); }
  /// Removes the provisional bytes. Throws Error.
  void drop_provisional();
  void keep_provisional() { lasting_.reset(); }

  /// State for checkpoints; call load() before open().
  nlohmann::json state() const;
  void load(const nlohmann::json& state);

  /// Returns the state to which open() truncates; nullopt if it truncates nothing.
  std::optional<Mark> resume_mark(const TrainState& state) const;

 private:
  std::filesystem::path file_;
  std::optional<Mark> loaded_;
  /// Size without the provisional bytes; nullopt without these.
  std::optional<std::uintmax_t> lasting_;
};

}  // namespace millrace
