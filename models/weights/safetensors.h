// Tensors by name, and files of them in the safetensors format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace at {
class Tensor;
}

namespace millrace {

/// In a fixed order.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The "__metadata__" strings of a file.
using Metadata = std::map<std::string, std::string>;

/// Every tensor of a file, in its order, in memory of its own. Throws Error naming the file and
/// what is wrong: too short, no JSON header, offsets outside the file or not matching shape and
/// type, unknown type. `metadata`, if given, receives the file's.
NamedTensors read_safetensors(const std::filesystem::path& file, Metadata* metadata = nullptr);

/// Only the metadata. Throws Error if the file has no header.
Metadata read_metadata(const std::filesystem::path& file);

/// Writes tensors (made contiguous, on the CPU) atomically; returns the file's digest
/// (millrace/base/digest.h). The same tensors give the same bytes. With `like`, an earlier file of
/// such tensors, not atomically: blocks that are the same are shared with it (write_sharing).
std::uint64_t write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                                const Metadata& metadata = {},
                                const std::filesystem::path& like = {});

}  // namespace millrace
