// Checkpoint folders, whose state.json has digests of the other files.
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

/// Returns the digest of bytes in the notation of state.json.
std::string digest_text(const std::string& bytes);

/// Writes `state`, whose member "files" maps names to digests, as state.json, with its own digest.
void write_sealed_state(const std::filesystem::path& folder, const nlohmann::json& state);

/// A verified state.json. Its errors do not name the checkpoint: see `in_checkpoint`.
class SealedState {
 public:
  /// Throws Error if it is missing or damaged.
  explicit SealedState(std::filesystem::path folder);

  /// Calls `work` with the state. Throws Error if the state lacks a member that `work` reads.
  template <class Work>
  auto read(Work work) const {
    try {
      return work(state_);
    } catch (const nlohmann::json::exception& problem) {
      refuse(problem);
    }
  }

  /// Returns true if there is a digest of this file.
  bool has(const std::string& name) const;
  /// Throws Error if a file does not have its digest.
  void check(const std::string& name) const;
  void check_all() const;

 private:
  [[noreturn]] static void refuse(const nlohmann::json::exception& problem);

  std::filesystem::path folder_;
  nlohmann::json state_;
};

/// The information that a checkpoint records about a file in it.
struct CheckpointOrigin {
  std::string config;                // TOML
  std::vector<std::string> classes;  // names in label order; empty = unknown
};

/// Returns nullopt if the file is not in a checkpoint. Throws Error if the checkpoint is damaged.
std::optional<CheckpointOrigin> origin_of(const std::filesystem::path& file);

/// Throws Error if `file` is in a checkpoint that is damaged or has another digest for it; the
/// message names an intact checkpoint beside it, if any.
void check_file_of_checkpoint(const std::filesystem::path& file);

/// Calls `work`, which reads a checkpoint, and converts its exceptions to Errors that name the
/// checkpoint.
template <class Work>
auto in_checkpoint(const std::filesystem::path& folder, Work work) {
  try {
    return work();
  } catch (const NewerCheckpoint& problem) {
    throw NewerCheckpoint("checkpoint " + folder.string() + " " + problem.what());
  } catch (const std::exception& problem) {
    throw Error("checkpoint " + folder.string() + " is damaged: " + problem.what());
  }
}

}  // namespace millrace
