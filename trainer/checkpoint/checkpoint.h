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
  std::int64_t epoch_size = 0;                   // samples; 0: not known
  std::vector<std::string> classes;              // by label; empty: not known
  std::map<std::string, double> hyper;           // changed hyper-parameters
  std::map<std::string, double> latest;          // published scalars
  std::map<std::string, std::string> callbacks;  // states as JSON, by callback name
  std::map<std::string, NamedTensors> callback_tensors;
  NamedTensors model;
  NamedTensors optimizer;
  std::string config;  // TOML
  Metadata metadata;   // of files of weights; written, not read back
};

/// `folder`/step-NNNNNN.
std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step);

/// The step of such a folder; -1 for any other.
std::int64_t step_of(const std::filesystem::path& checkpoint);

/// Writes checkpoint_of(`folder`, its step) and points `latest` at it; an older one of the same
/// step is replaced. Atomic: readers see all of it or nothing, whenever the process dies. Returns
/// the new folder. Throws Error, and leaves nothing then; if `latest` cannot be made a link, it
/// warns.
std::filesystem::path write_checkpoint(const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint);

/// Throws Error naming the file that is missing or damaged.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint);

/// The checkpoints in `folder`, oldest step first; none if it is missing.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

/// The newest checkpoint that can be read, with a warning for each newer one that is damaged; makes
/// `latest` point at it. Nothing if there is none at all. Throws Error if all are damaged or if one
/// was written by a newer version.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder);

}  // namespace millrace
