// Checkpoints: a folder a step, whole or not there, checked when read.
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

#include "millrace/trainer/detector/position.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

struct Checkpoint {
  Position at;
  std::uint64_t seed = 0;
  std::int64_t epoch_size = 0;                   // samples of an epoch; 0: not known
  std::vector<std::string> classes;              // names in label order; empty: not known
  std::map<std::string, double> hyper;           // parameters of a training that may change
  std::map<std::string, double> latest;          // published scalars
  std::map<std::string, std::string> callbacks;  // states as JSON, by callback name
  std::map<std::string, NamedTensors> callback_tensors;
  NamedTensors model;
  NamedTensors optimizer;
  std::string config;  // TOML
  Metadata metadata;   // of each file of weights; written, not read back
};

/// Where the checkpoint of a step lies: `folder`/step-NNNNNN.
std::filesystem::path checkpoint_of(const std::filesystem::path& folder, std::int64_t step);

/// The step of such a folder; -1: it is none.
std::int64_t step_of(const std::filesystem::path& checkpoint);

/// Writes checkpoint_of(`folder`, its step) beside its place, syncs it, renames it there and points
/// `latest` at it: a reader sees all of it or nothing, whenever the process dies. Replaces an older
/// one of the same step. Returns the new folder. Throws Error where it cannot be written, and
/// leaves nothing of it then; a `latest` that cannot be a link to it (somebody made a folder of
/// that name) is a warning.
std::filesystem::path write_checkpoint(const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint);

/// Reads one checkpoint. Throws Error naming the file that is missing or damaged.
Checkpoint read_checkpoint(const std::filesystem::path& checkpoint);

/// The checkpoints in `folder`, oldest step first; none where the folder is missing.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

/// The newest checkpoint that can be read, to resume from, with a warning for each newer one that
/// is damaged. `latest` points at it then, wherever the process before was killed. Nothing where
/// there is none at all; throws Error where all are damaged, or where one was written by a newer
/// version of this program.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& folder);

}  // namespace millrace
