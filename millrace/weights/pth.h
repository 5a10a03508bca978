// Checkpoints as Python writes them: torch's .pth (zip archives since torch 1.6, and the plain
// streams before), and the pickled NumPy arrays of detectron2's model zoo (.pkl).
#pragma once

#include <filesystem>

#include "millrace/weights/safetensors.h"

namespace millrace {

/// The state dict of a file, in its order. The pickle in it is read as data (pickle.h): no code is
/// run, whatever the file asks for. Of a zip archive only the storages of the state dict are read,
/// each once; tensors that share one in the file share it here. Throws Error naming the file and
/// what is wrong with it.
NamedTensors read_pth(const std::filesystem::path& file);

/// Writes a zip archive that torch.load(weights_only=True) reads as an OrderedDict, atomically. The
/// same tensors give the same bytes.
void write_pth(const std::filesystem::path& file, const NamedTensors& tensors);

}  // namespace millrace
