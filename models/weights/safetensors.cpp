#include "millrace/models/weights/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "millrace/base/digest.h"
#include "millrace/base/disk/shared_blocks.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/models/weights/tensor_types.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // bytes, the format's own limit

/// One tensor as described by the header; offsets count from the end of the header.
struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;
};

/// Returns a member of a tensor's description.
const json& member(const json& value, const char* key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  if (found == value.end()) throw Error("missing " + std::string(key));
  return *found;
}

Entry entry_of(const std::string& name, const json& value) try {
  const auto& offsets = member(value, "data_offsets");
  const auto whole = [](const json& number) { return number.is_number_unsigned(); };
  const auto& shape = member(value, "shape");
  const auto& dtype = member(value, "dtype");
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole))
    throw Error("its shape is not a list of non-negative integers");
  if (!offsets.is_array() || offsets.size() != 2 ||
      !std::all_of(offsets.begin(), offsets.end(), whole))
    throw Error("its offsets are not two non-negative integers");
  if (!dtype.is_string()) throw Error("its dtype is not a string");
  const auto type = type_named(&TensorType::safetensors, dtype.get<std::string>());
  Entry entry{name, type, {}, offsets[0], offsets[1]};
  for (const auto& side : shape) entry.shape.push_back(side.get<std::int64_t>());
  if (entry.end < entry.begin || entry.end - entry.begin != byte_count(entry.shape, entry.type))
    throw Error("its offsets do not match its shape and type");
  return entry;
} catch (const Error& problem) {
  throw Error("tensor '" + name + "': " + problem.what());
}

/// Returns the header's tensors in the order of their bytes, which must fill the `size` bytes after
/// the header.
std::vector<Entry> entries_of(const json& header, std::uint64_t size) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items())
    if (name != "__metadata__") entries.push_back(entry_of(name, value));
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const auto& entry : entries) {
    if (entry.begin != at)
      throw Error("tensor '" + entry.name + "' begins at byte " + std::to_string(entry.begin) +
                  ", but the previous one ends at " + std::to_string(at));
    at = entry.end;
  }
  if (at != size)
    throw Error("the tensors take " + std::to_string(at) + " bytes, but the file contains " +
                std::to_string(size) + " bytes of values");
  return entries;
}

struct FileHeader {
  json members;
  std::uint64_t end;  // end of the header and start of the values
};

FileHeader read_header(const InputFile& in) {
  std::uint64_t length = 0;
  if (in.size() < sizeof length)
    throw Error("is not a safetensors file: it has only " + std::to_string(in.size()) + " bytes");
  in.read(0, {reinterpret_cast<char*>(&length), sizeof length});
  if (length > std::min(in.size() - sizeof length, kMaxHeader))
    throw Error("is not a safetensors file or is truncated: the header size is " +
                std::to_string(length) + " bytes");
  std::string text(length, '\0');
  in.read(sizeof length, text);
  auto members = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!members.is_object())
    throw Error("is not a safetensors file: the header is not a JSON object");
  return {std::move(members), sizeof length + length};
}

Metadata metadata_of(const json& header) {
  Metadata metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  if (!found->is_object()) throw Error("its __metadata__ is not an object of strings");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) throw Error("'" + key + "' in its __metadata__ is not a string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

/// Calls `work` with a file and its header. Errors name the file.
template <class Work>
auto with_header(const std::filesystem::path& file, Work work) {
  std::error_code ignored;  // InputFile reports it
  if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored))
    throw Error(file.string() + ": is not a regular file");
  const InputFile in(file);
  try {
    return work(in, read_header(in));
  } catch (const Error& problem) {
    throw Error(file.string() + ": " + problem.what());
  }
}

}  // namespace

NamedTensors read_safetensors(const std::filesystem::path& file, Metadata* metadata) {
  return with_header(file, [&](const InputFile& in, const FileHeader& header) {
    if (metadata) *metadata = metadata_of(header.members);
    NamedTensors tensors;
    for (const auto& entry : entries_of(header.members, in.size() - header.end)) {
      auto tensor = at::empty(entry.shape, bytes_type(entry.type));
      in.read(header.end + entry.begin,
              {static_cast<char*>(tensor.mutable_data_ptr()), entry.end - entry.begin});
      tensors.emplace_back(entry.name, of_type(tensor, entry.type));
    }
    return tensors;
  });
}

Metadata read_metadata(const std::filesystem::path& file) {
  return with_header(
      file, [](const InputFile&, const FileHeader& header) { return metadata_of(header.members); });
}

std::uint64_t write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                                const Metadata& metadata, const std::filesystem::path& like) {
  // Wide types come first, so that every tensor is aligned.
  NamedTensors ordered;
  for (const auto& [name, tensor] : tensors)
    ordered.emplace_back(name, tensor.detach().cpu().contiguous());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });

  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t size = 0;
  for (const auto& [name, tensor] : ordered) {
    if (name == "__metadata__" || header.contains(name))
      throw Error(file.string() + ": the tensor name '" + name + "' is reserved or used twice");
    header[name] = {{"dtype", name_of(&TensorType::safetensors, tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {size, size + tensor.nbytes()}}};
    size += tensor.nbytes();
  }
  auto text = header.empty() ? "{}" : header.dump();
  // Values start at the same byte for metadata of any length, so that blocks can be shared.
  const std::size_t unit = metadata.empty() ? 8 : 4096, head = sizeof(std::uint64_t);
  text.resize((head + text.size() + unit - 1) / unit * unit - head, ' ');
  const std::uint64_t length = text.size();

  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), sizeof length},
                                         text};
  for (const auto& [name, tensor] : ordered)
    parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  if (like.empty())
    write_file_atomically(file, parts);
  else
    write_sharing(file, parts, like);
  return digest_of_parts(parts);
}

}  // namespace millrace
