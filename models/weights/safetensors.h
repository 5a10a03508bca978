// Named tensors, and files of them in the safetensors format.
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

/// Tensors by name, in a fixed order.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The "__metadata__" strings of a file.
using Metadata = std::map<std::string, std::string>;

/// Reads every tensor of a file, in its order, into its own memory. Throws Error naming the file
/// and the problem: too short, no JSON header, offsets outside the file or not matching shape and
/// type, unknown type. `metadata`, if given, receives the file's.
NamedTensors read_safetensors(const std::filesystem::path& file, Metadata* metadata = nullptr);

/// Reads only the metadata. Throws Error if the file has no header.
Metadata read_metadata(const std::filesystem::path& file);

/// Writes tensors (made contiguous, on the CPU) atomically and returns the file's digest
/// (millrace/base/digest.h). The same tensors give the same bytes. With `like`, an earlier file of
/// such tensors, writes non-atomically and shares equal blocks with it (write_sharing).
std::uint64_t write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                                const Metadata& metadata = {},
                                const std::filesystem::path& like = {});

}  // namespace millrace
