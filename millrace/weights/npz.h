// NumPy's .npz: a zip archive of .npy arrays, as tensorpack stores its models.
#pragma once

#include <filesystem>

#include "millrace/weights/safetensors.h"

namespace millrace {

/// Every array of an archive in its order, named without ".npy". Arrays are little-endian numbers
/// in C order; nothing pickled. Throws Error naming the file, the array and what is wrong with it.
NamedTensors read_npz(const std::filesystem::path& file);

/// Writes an archive of arrays, not packed, atomically. The same tensors give the same bytes. NumPy
/// has no bf16: such tensors are an Error.
void write_npz(const std::filesystem::path& file, const NamedTensors& tensors);

}  // namespace millrace
