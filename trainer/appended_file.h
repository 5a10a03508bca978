// Files of a run that only grow; a resumed run first cuts them back to its checkpoint.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

class TrainState;

/// Appends in one write, so that writers do not mix their bytes: all or nothing. Throws Error.
void append_to(const std::filesystem::path& file, std::string_view bytes);

/// Cuts a file that is longer than `size` bytes. Throws Error.
void cut_file(const std::filesystem::path& file, std::uintmax_t size);

/// A file that a callback appends to and that has every line once, whenever the process was killed
/// and resumed: a resumed training drops what was written after its checkpoint and writes it again.
/// A callback holds one and saves its state (see SavesState):
///
///   before_train:  file_.open(state, state.folder / "best.txt");
///   any hook:      file_.append("step 5: 0.31\n");
///   save_state:    return {{"file", file_.state()}, ...};
///   load_state:    file_.load(saved.at("file"));
class AppendedFile {
 public:
  /// The file when a checkpoint was taken.
  struct Mark {
    std::string file;  // its name; empty: there was no file
    std::uintmax_t bytes = 0;
  };

  /// Appends to `file` from now on. First cuts off what was written after the checkpoint: all of it
  /// in a new training, nothing if the checkpoint does not know this callback. Throws Error.
  void open(const TrainState& state, std::filesystem::path file);
  bool is_open() const { return !file_.empty(); }

  /// Throws Error.
  void append(std::string_view bytes);

  /// Appends what the next `append`, or a resumed training, drops again. Throws Error.
  void append_provisionally(std::string_view bytes);
  bool has_provisional() const { return lasting_.has_value(); }
  /// Throws Error.
  void drop_provisional();
  void keep_provisional() { lasting_.reset(); }

  /// For checkpoints. Load before `open`.
  nlohmann::json state() const;
  void load(const nlohmann::json& state);

  /// What `open` cuts back to; nothing: it cuts nothing.
  std::optional<Mark> goes_on_from(const TrainState& state) const;

 private:
  std::filesystem::path file_;
  std::optional<Mark> loaded_;
  std::optional<std::uintmax_t> lasting_;  // size before provisional lines
};

}  // namespace millrace
