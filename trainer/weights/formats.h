// The files that weights come in, by their extensions.
#pragma once

#include <filesystem>

#include "trainer/safetensors.h"

namespace millrace {

/// The tensors of .safetensors, .pth (.pt, .bin), .pkl, .npz or of a checkpoint folder, under the names that the file has.
/// Throws Error naming the file where it is none of these, or damaged.
NamedTensors read_weights(const std::filesystem::path& file);

/// Throws ConfigError where files of this extension cannot be written.
void check_writable_format(const std::filesystem::path& file);

/// Writes .safetensors, .pth or .npz, atomically. Throws ConfigError for another extension.
void write_weights(const std::filesystem::path& file, const NamedTensors& tensors);

}  // namespace millrace
