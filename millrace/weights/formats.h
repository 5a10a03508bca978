// The files that weights come in, by their extensions.
#pragma once

#include <filesystem>

#include "millrace/weights/safetensors.h"

namespace millrace {

/// The file that --weights and model.weights mean: of a checkpoint folder its model.safetensors.
/// Throws Error where there is none.
std::filesystem::path weight_file(const std::filesystem::path& weights);

/// The tensors of .safetensors, .pth (.pt, .bin), .pkl, .npz or of a checkpoint folder, under the
/// names that the file has. Throws Error naming the file where it is none of these, or damaged:
/// digests are checked where the file, its archive or the checkpoint around it has any.
NamedTensors read_weights(const std::filesystem::path& weights);

/// Throws ConfigError where files of this extension cannot be written.
void check_writable_format(const std::filesystem::path& file);

/// Writes .safetensors, .pth or .npz, atomically. Only .safetensors takes metadata, which it gets
/// with a seal (seal.h). Throws ConfigError for another extension.
void write_weights(const std::filesystem::path& file, const NamedTensors& tensors,
                   const Metadata& metadata = {});

/// Whether files of this extension take metadata.
bool takes_metadata(const std::filesystem::path& file);

}  // namespace millrace
