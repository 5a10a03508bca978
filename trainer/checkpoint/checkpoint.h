// Checkpoints: one folder per step, written atomically, verified when read.
//
//   checkpoints/step-000500/model.safetensors      parameters
//                           optimizer.safetensors  momentum
//                           callback.NAME.safetensors  of a callback that keeps tensors
//                           state.json             position, callback states, digests of all files
//                           config.toml
//   checkpoints/latest -> step-000500
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/checkpoint/position.h"

namespace millrace {

struct Checkpoint {
  Position at;
  std::uint64_t seed = 0;
  std::int64_t epoch_size = 0;                   // number of samples; 0 = unknown
  std::vector<std::string> classes;              // class names by label; empty = unknown
  std::map<std::string, double> hyper;           // hyper-parameters that have been changed
  std::map<std::string, double> latest;          // last published metrics
  std::map<std::string, std::string> callbacks;  // states of callbacks as JSON, by callback name
  std::map<std::string, NamedTensors> callback_tensors;
  NamedTensors model;
  NamedTensors optimizer;
  std::string config;  // configuration as TOML
  Metadata metadata;   // metadata of the weight files; written only
};

/// Returns `folder`/step-NNNNNN.
std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step);

/// Returns the step of a checkpoint's folder; -1 for any other name.
std::int64_t step_of(const std::filesystem::path& checkpoint);

/// Writes the checkpoint to checkpoint_of(`folder`, its step), replacing an existing one of the
/// same step, and points `latest` at it. Returns the new folder. The write is atomic, even if the
/// process is killed: readers see the whole checkpoint or none. Throws Error and then leaves no
/// files; only warns if `latest` cannot be made a link.
std::filesystem::path write_checkpoint(const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint);

/// Reads a checkpoint. Throws Error naming a missing or damaged file.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint);

/// Returns the checkpoints in `folder`, oldest step first; empty if the folder does not exist.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

/// Returns the newest readable checkpoint, warns about each newer one that is damaged, and makes
/// `latest` point at it. nullopt if there are no checkpoints. Throws Error if all are damaged or if
/// one was written by a newer version.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder);

}  // namespace millrace
