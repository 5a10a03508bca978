// NumPy's .npz: a zip archive of .npy arrays, as tensorpack stores its models.
#pragma once

#include <filesystem>

#include "trainer/safetensors.h"

namespace millrace {

/// Every array of an archive in its order, named without ".npy". Arrays are little-endian numbers in C order;
/// nothing pickled. Throws Error naming the file, the array and what is wrong with it.
NamedTensors read_npz(const std::filesystem::path& file);

}  // namespace millrace
