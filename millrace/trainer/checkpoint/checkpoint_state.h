// The state.json of a checkpoint: where the training stood.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/weights/sealed_folder.h"

namespace millrace {

/// Writes the state of a checkpoint whose other files are in `folder`; `digests` are theirs, by
/// name.
void write_state(const std::filesystem::path& folder, const Checkpoint& checkpoint,
                 const std::map<std::string, std::string>& digests);

/// Everything but tensors and configuration; of callbacks with tensors the names. Throws
/// NewerCheckpoint, Error.
void read_state(const SealedState& sealed, Checkpoint& checkpoint);

}  // namespace millrace
