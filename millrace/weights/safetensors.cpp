#include "millrace/weights/safetensors.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/weights/tensor_bytes.h"
#include "millrace/weights/tensor_types.h"

namespace millrace {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;  // bytes, the format's own limit

/// One tensor as the header describes it; offsets count from the end of the header.
struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;
};

/// A member of a tensor's description.
const json& member(const json& value, const char* key) {
  const auto found = value.is_object() ? value.find(key) : value.end();
  if (found == value.end()) throw Error("it has no " + std::string(key));
  return *found;
}

Entry entry_of(const std::string& name, const json& value) try {
  const auto& offsets = member(value, "data_offsets");
  const auto whole = [](const json& number) { return number.is_number_unsigned(); };
  const auto& shape = member(value, "shape");
  const auto& dtype = member(value, "dtype");
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), whole))
    throw Error("its shape is not a list of whole numbers");
  if (!offsets.is_array() || offsets.size() != 2 ||
      !std::all_of(offsets.begin(), offsets.end(), whole))
    throw Error("its offsets are not two whole numbers");
  if (!dtype.is_string()) throw Error("its dtype is not a name");
  const auto type = type_named(&TensorType::safetensors, dtype.get<std::string>());
  Entry entry{name, type, {}, offsets[0], offsets[1]};
  for (const auto& side : shape) entry.shape.push_back(side.get<std::int64_t>());
  if (entry.end < entry.begin || entry.end - entry.begin != byte_count(entry.shape, entry.type))
    throw Error("its offsets do not match its shape and type");
  return entry;
} catch (const Error& problem) {
  throw Error("tensor '" + name + "': " + problem.what());
}

/// The header's tensors in the order of their bytes, which must fill the `size` bytes after the
/// header.
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
                  ", but the one before ends at " + std::to_string(at));
    at = entry.end;
  }
  if (at != size)
    throw Error("the tensors take " + std::to_string(at) + " bytes, but the file has " +
                std::to_string(size) + " for them");
  return entries;
}

/// Reads a whole file in order and never past its end.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : in_(file, std::ios::binary | std::ios::ate) {
    if (!in_ || !std::filesystem::is_regular_file(file)) throw Error("cannot be opened");
    left_ = static_cast<std::uint64_t>(in_.tellg());
    in_.seekg(0);
  }

  std::uint64_t left() const { return left_; }

  void read(void* to, std::uint64_t bytes) {
    if (bytes > left_ || !in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)))
      throw Error("ends too early");
    left_ -= bytes;
  }

 private:
  std::ifstream in_;
  std::uint64_t left_ = 0;
};

json read_header(Reader& in) {
  std::uint64_t length = 0;
  if (in.left() < sizeof length)
    throw Error("is no safetensors file: it has only " + std::to_string(in.left()) + " bytes");
  in.read(&length, sizeof length);
  if (length > std::min(in.left(), kMaxHeader))
    throw Error("is no safetensors file, or it is cut off: the header would take " +
                std::to_string(length) + " bytes");
  std::string text(length, '\0');
  in.read(text.data(), length);
  auto header = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) throw Error("is no safetensors file: the header is not a JSON object");
  return header;
}

Metadata metadata_of(const json& header) {
  Metadata metadata;
  const auto found = header.find("__metadata__");
  if (found == header.end()) return metadata;
  if (!found->is_object()) throw Error("its __metadata__ is no table of strings");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) throw Error("its __metadata__ has '" + key + "', which is no string");
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

NamedTensors read_tensors(Reader& in, const json& header) {
  NamedTensors tensors;
  for (const auto& entry : entries_of(header, in.left())) {
    auto tensor = at::empty(entry.shape, bytes_type(entry.type));
    in.read(tensor.mutable_data_ptr(), entry.end - entry.begin);
    tensors.emplace_back(entry.name, of_type(tensor, entry.type));
  }
  return tensors;
}

}  // namespace

NamedTensors read_safetensors(const std::filesystem::path& file, Metadata* metadata) try {
  Reader in(file);
  const auto header = read_header(in);
  if (metadata) *metadata = metadata_of(header);
  return read_tensors(in, header);
} catch (const Error& problem) {
  throw Error(file.string() + ": " + problem.what());
}

Metadata read_metadata(const std::filesystem::path& file) try {
  Reader in(file);
  return metadata_of(read_header(in));
} catch (const Error& problem) {
  throw Error(file.string() + ": " + problem.what());
}

std::uint64_t write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors,
                                const Metadata& metadata) {
  // Wide types first, so that every tensor is aligned.
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
      throw Error(file.string() + ": the tensor name '" + name + "' is taken");
    header[name] = {{"dtype", name_of(&TensorType::safetensors, tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {size, size + tensor.nbytes()}}};
    size += tensor.nbytes();
  }
  auto text = header.empty() ? "{}" : header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();

  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), sizeof length},
                                         text};
  for (const auto& [name, tensor] : ordered)
    parts.emplace_back(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  write_file_atomically(file, parts);
  return digest_of_parts(parts);
}

}  // namespace millrace
