// Folders whose state.json has digests of the other files: checkpoints.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/errors.h"

namespace millrace {

inline constexpr auto kCheckpointConfig = "config.toml";

/// A checkpoint written by a newer version.
struct NewerCheckpoint : Error {
  using Error::Error;
};

/// The digest of a file's bytes as state.json has it.
std::string digest_text(const std::string& bytes);

/// Writes `state`, whose member "files" maps names to digests, as state.json, with its own digest.
void write_sealed_state(const std::filesystem::path& folder, const nlohmann::json& state);

/// A state.json that has not changed. Its errors do not name the checkpoint: see `in_checkpoint`.
class SealedState {
 public:
  /// Throws Error if it is missing or damaged.
  explicit SealedState(std::filesystem::path folder);

  /// Calls `work` with the state. Throws Error if that lacks a member.
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
  /// Throws Error if a file does not have its digest.
  void check(const std::string& name) const;
  void check_all() const;

 private:
  [[noreturn]] static void refuse(const nlohmann::json::exception& problem);

  std::filesystem::path folder_;
  nlohmann::json state_;
};

/// What a checkpoint records about a file in it.
struct CheckpointOrigin {
  std::string config;                // TOML
  std::vector<std::string> classes;  // names in label order; empty: unknown
};

/// Nothing if the file is in no checkpoint. Throws Error if that is damaged.
std::optional<CheckpointOrigin> origin_of(const std::filesystem::path& file);

/// Throws Error if `file` is in a checkpoint that is damaged, or has another digest for it; it
/// names a whole checkpoint beside that one, if any.
void check_file_of_checkpoint(const std::filesystem::path& file);

/// Calls `work`, which reads a checkpoint; its exceptions become Errors that name the checkpoint.
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
