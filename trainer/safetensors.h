// The safetensors format: named tensors in one file, readable without running code.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Every tensor of a file, in the file's order, copied into memory of its own. Throws Error naming the file and what
/// is wrong: too short, header that is no JSON, offsets outside the file or not matching shape and type, unknown
/// type. `metadata`, where given, receives the "__metadata__" strings.
NamedTensors read_safetensors(const std::filesystem::path& file,
                              std::map<std::string, std::string>* metadata = nullptr);

/// Writes tensors (made contiguous, on the CPU) atomically; returns the file's digest (base/digest.h). The same tensors
/// give the same bytes.
std::uint64_t write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                                const std::map<std::string, std::string>& metadata = {});

}  // namespace millrace
