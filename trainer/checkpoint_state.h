// state.json of a checkpoint: where the training stood, and digests of all files beside it.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "trainer/checkpoint.h"

namespace millrace {

inline constexpr auto kCheckpointConfig = "config.toml";

/// A checkpoint written by a program that knows more than this one.
struct NewerCheckpoint : Error {
  using Error::Error;
};

/// Writes the state of a checkpoint whose other files are in `folder`; `digests` are theirs, by name.
void write_state(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                 const std::map<std::string, std::string>& digests);

/// The digest of a file's bytes as state.json has it.
std::string digest_text(const std::string& bytes);

/// A state.json whose bytes are those that were written. What its functions throw does not name the checkpoint: see
/// `in_checkpoint`.
class SealedState {
 public:
  /// Throws Error where it is not there or damaged.
  explicit SealedState(std::filesystem::path folder);

  /// Everything but tensors and configuration; of callbacks with tensors the names. Throws NewerCheckpoint, Error.
  void read_into(Checkpoint& checkpoint) const;

  /// Whether there is a digest of this file.
  bool has(const std::string& name) const;
  /// Throws Error where the bytes of a file are not those that there is a digest of.
  void check(const std::string& name) const;
  /// Names in label order; empty: not known.
  std::vector<std::string> classes() const;

 private:
  std::filesystem::path folder_;
  nlohmann::json state_;
};

/// What a checkpoint says of one of its files, for who uses that alone.
struct CheckpointOrigin {
  std::string config;                // TOML
  std::vector<std::string> classes;  // names in label order; empty: not known
};

/// Nothing where the file lies in no checkpoint. Throws Error where that is damaged.
std::optional<CheckpointOrigin> origin_of(const std::filesystem::path& file);

/// Throws Error where `file` lies in a checkpoint whose state.json has another digest for it, or is damaged.
void check_file_of_checkpoint(const std::filesystem::path& file);

/// Does `work` with what a checkpoint says; what it throws becomes an Error that names the checkpoint.
template <class Work>
auto in_checkpoint(const std::filesystem::path& folder, Work work) {
  try {
    return work();
  } catch (const NewerCheckpoint& problem) {
    throw NewerCheckpoint("the checkpoint " + folder.string() + " " + problem.what());
  } catch (const std::exception& problem) {
    throw Error("the checkpoint " + folder.string() + " is damaged: " + problem.what());
  }
}

}  // namespace millrace
