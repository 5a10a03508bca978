// The file formats of weights, chosen by extension. Code in files is never run.
#pragma once

#include <filesystem>

#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// Returns the weight file that --weights, model.weights or a predictor refers to: in a
/// checkpoint's folder its model.safetensors, in a run's folder that of its latest checkpoint.
/// Throws Error if not found.
std::filesystem::path weight_file(const std::filesystem::path& weights);

/// Returns true if files of this extension are weights: one of those of read_weights.
bool is_weight_file(const std::filesystem::path& file);

/// Reads the tensors of .safetensors, .pth (.pt, .bin), .pkl, .npz or of a checkpoint folder, under
/// the file's names. Throws Error naming the file if it has another format or is damaged: digests
/// are checked if the file, its archive or its checkpoint has any.
NamedTensors read_weights(const std::filesystem::path& weights);

/// Throws ConfigError if files of this extension cannot be written.
void check_writable_format(const std::filesystem::path& file);

/// Writes .safetensors, .pth or .npz, atomically. Only .safetensors stores metadata, with a digest
/// of the content. Throws ConfigError for another extension.
void write_weights(const std::filesystem::path& file, const NamedTensors& tensors,
                   const Metadata& metadata = {});

/// Returns true if files of this extension store metadata.
bool takes_metadata(const std::filesystem::path& file);

/// Reads the state dict of a Python checkpoint, in its order: torch's .pth (zip archives since
/// torch 1.6, plain streams before), or the pickled NumPy arrays of detectron2's model zoo (.pkl).
/// Only the storages of the state dict are read from a zip archive; tensors that share a storage in
/// the file share it here. Throws Error naming the file and the problem.
NamedTensors read_pth(const std::filesystem::path& file);

/// Writes a zip archive that torch.load(weights_only=True) reads as an OrderedDict, atomically. The
/// same tensors give the same bytes.
void write_pth(const std::filesystem::path& file, const NamedTensors& tensors);

/// Reads all arrays of NumPy's .npz (a zip archive of .npy), in its order, named without ".npy".
/// Arrays must be little-endian numbers. Throws Error naming the file, the array and the problem.
NamedTensors read_npz(const std::filesystem::path& file);

/// Writes an archive of arrays, not compressed, atomically. The same tensors give the same bytes.
/// Throws Error for bf16, which NumPy does not have.
void write_npz(const std::filesystem::path& file, const NamedTensors& tensors);

// The metadata of a weight file has a digest of its content, so that a changed byte is detected
// from the file alone.

/// Returns `metadata` with a digest of it and of the tensors: their names, types, shapes and bytes,
/// in an order independent of the file's.
Metadata with_content_digest(Metadata metadata, const NamedTensors& tensors);

/// Returns true if there is a digest. Throws Error if it does not match the tensors and metadata,
/// or is missing although Millrace wrote the metadata.
bool check_content_digest(const Metadata& metadata, const NamedTensors& tensors);

}  // namespace millrace
