// Files of a run that only grow, and that a resumed run first cuts back to what they held at its
// checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

class TrainState;

/// Appends in one write, so that no reader sees the bytes of two writers mixed. Throws Error.
void append_to(const std::filesystem::path& file, std::string_view bytes);

/// Drops what follows the first `size` bytes. Does nothing where the file is missing or not longer.
/// Throws Error.
void cut_file(const std::filesystem::path& file, std::uintmax_t size);

/// A file that a callback appends to and that has every line once, wherever the process was killed
/// and resumed: a training that continues from a checkpoint drops what was written after it, and
/// writes it again. A callback holds one and passes its state on (see SavesState):
///
///   before_train:  file_.open(state, state.folder / "best.txt");
///   any hook:      file_.append("step 5: 0.31\n");
///   save_state:    return {{"file", file_.state()}, ...};
///   load_state:    file_.load(saved.at("file"));
class AppendedFile {
 public:
  /// A file as it was when a checkpoint was taken.
  struct Mark {
    std::string file;  // its name; empty: there was none
    std::uintmax_t bytes = 0;
  };

  /// Appends to `file` from now on. What was written after the checkpoint is cut off first; in a
  /// training from the start that is everything; where the checkpoint does not know this callback,
  /// nothing. Throws Error.
  void open(const TrainState& state, std::filesystem::path file);
  bool is_open() const { return !file_.empty(); }

  /// Throws Error.
  void append(std::string_view bytes);

  /// The same for what the next `append`, and a resumed training, drop again. Throws Error.
  void append_provisionally(std::string_view bytes);

  /// What a checkpoint keeps of it, and the same the other way, before `open`.
  nlohmann::json state() const;
  void load(const nlohmann::json& state);

  /// What `open` cuts back to; nothing: it cuts off nothing.
  std::optional<Mark> goes_on_from(const TrainState& state) const;

 private:
  std::filesystem::path file_;
  std::optional<Mark> loaded_;
  std::optional<std::uintmax_t> lasting_;  // bytes before what was appended provisionally
};

}  // namespace millrace
