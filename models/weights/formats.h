// The files that weights come in, by their extensions. No code in them is run.
#pragma once

#include <filesystem>

#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// The file that --weights, model.weights and a predictor mean: of a checkpoint's folder its
/// model.safetensors, of a run's folder that of its latest checkpoint. Throws Error if there is
/// none.
std::filesystem::path weight_file(const std::filesystem::path& weights);

/// Whether files of this extension are weights, by the list below.
bool is_weight_file(const std::filesystem::path& file);

/// The tensors of .safetensors, .pth (.pt, .bin), .pkl, .npz or of a checkpoint folder, under the
/// file's names. Throws Error naming the file if it is none of these, or damaged: digests are
/// checked if the file, its archive or the checkpoint around it has any.
NamedTensors read_weights(const std::filesystem::path& weights);

/// Throws ConfigError if files of this extension cannot be written.
void check_writable_format(const std::filesystem::path& file);

/// Writes .safetensors, .pth or .npz, atomically. Only .safetensors takes metadata, which it gets
/// with a seal. Throws ConfigError for another extension.
void write_weights(const std::filesystem::path& file, const NamedTensors& tensors,
                   const Metadata& metadata = {});

/// Whether files of this extension take metadata.
bool takes_metadata(const std::filesystem::path& file);

/// The state dict of a checkpoint as Python writes it, in its order: torch's .pth (zip archives
/// since torch 1.6, plain streams before), or the pickled NumPy arrays of detectron2's model zoo
/// (.pkl). Of a zip archive only the storages of the state dict are read; tensors that share one in
/// the file share it here. Throws Error naming the file and what is wrong with it.
NamedTensors read_pth(const std::filesystem::path& file);

/// Writes a zip archive that torch.load(weights_only=True) reads as an OrderedDict, atomically. The
/// same tensors give the same bytes.
void write_pth(const std::filesystem::path& file, const NamedTensors& tensors);

/// All arrays of NumPy's .npz (a zip archive of .npy), in its order, named without ".npy". Arrays
/// are little-endian numbers in C order. Throws Error naming the file, the array and what is wrong.
NamedTensors read_npz(const std::filesystem::path& file);

/// Writes an archive of arrays, not compressed, atomically. The same tensors give the same bytes.
/// Throws Error for bf16, which NumPy does not have.
void write_npz(const std::filesystem::path& file, const NamedTensors& tensors);

// The seal of a weight file: a digest of its content among its metadata, so that the file alone
// shows whether a byte of it has changed.

/// `metadata` with the seal of it and the tensors: their names, types, shapes and bytes in any
/// order.
Metadata sealed(Metadata metadata, const NamedTensors& tensors);

/// Whether there is a seal. Throws Error if it is of other tensors or metadata, or is missing
/// although the metadata are ours.
bool check_seal(const Metadata& metadata, const NamedTensors& tensors);

}  // namespace millrace
