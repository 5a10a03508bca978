// A folder whose state.json has digests of the files beside it, as checkpoints are: whether they
// are what was written.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/errors.h"

namespace millrace {

inline constexpr auto kCheckpointConfig = "config.toml";

/// A checkpoint written by a program that knows more than this one.
struct NewerCheckpoint : Error {
  using Error::Error;
};

/// The digest of a file's bytes as state.json has it.
std::string digest_text(const std::string& bytes);

/// Writes `state`, whose member "files" maps names to digests, as the state.json of a folder, with
/// a digest of its own.
void write_sealed_state(const std::filesystem::path& folder, const nlohmann::json& state);

/// A state.json whose bytes are those that were written. What its functions throw does not name the
/// checkpoint: see `in_checkpoint`.
class SealedState {
 public:
  /// Throws Error where it is missing or damaged.
  explicit SealedState(std::filesystem::path folder);

  /// Calls `work` with the state. Throws Error where it lacks a member that `work` asks for.
  template <class Work>
  auto read(Work work) const {
    try {
      return work(state_);
    } catch (const nlohmann::json::exception& problem) {
      refuse(problem);
    }
  }

  /// Whether there is a digest of this file.
  bool has(const std::string& name) const;
  /// Throws Error where the bytes of a file are not those that there is a digest of.
  void check(const std::string& name) const;

 private:
  [[noreturn]] static void refuse(const nlohmann::json::exception& problem);

  std::filesystem::path folder_;
  nlohmann::json state_;
};

/// What a checkpoint says of one of its files, for a reader of that file alone.
struct CheckpointOrigin {
  std::string config;                // TOML
  std::vector<std::string> classes;  // names in label order; empty: not known
};

/// Nothing where the file lies in no checkpoint. Throws Error where that is damaged.
std::optional<CheckpointOrigin> origin_of(const std::filesystem::path& file);

/// Throws Error where `file` lies in a checkpoint whose state.json has another digest for it, or is
/// damaged.
void check_file_of_checkpoint(const std::filesystem::path& file);

/// Calls `work`, which reads a checkpoint; what it throws becomes an Error that names the
/// checkpoint.
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
