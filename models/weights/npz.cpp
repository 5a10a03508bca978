#include <ATen/ops/empty.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <regex>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/models/weights/archive.h"
#include "millrace/models/weights/formats.h"
#include "millrace/models/weights/tensor_types.h"

namespace millrace {
namespace {

constexpr std::string_view kSuffix = ".npy";

struct Header {
  at::ScalarType type;
  bool fortran_order;  // the first dimension varies fastest
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;  // length of the header itself
};

/// Returns the type of "<f4" or "|u1": little-endian, or of one byte.
at::ScalarType type_of(std::string_view name) {
  if (name.starts_with('>')) throw Error(std::string(kBigEndian));
  for (const auto& known : kTensorTypes)
    if (!known.numpy.empty() && (name.starts_with('<') || name.starts_with('|')) &&
        name.substr(1) == known.numpy)
      return known.type;
  throw Error("unknown type '" + std::string(name) + "'");
}

/// Parses e.g. {'descr': '<f4', 'fortran_order': False, 'shape': (64, 3), }
Header parse(const std::string& text) {
  static const std::regex kPlain(
      R"(\s*\{\s*'descr'\s*:\s*'([^']*)'\s*,\s*'fortran_order'\s*:\s*(True|False)\s*,)"
      R"(\s*'shape'\s*:\s*\(([^)]*)\)\s*(?:,\s*)?\})");
  std::smatch parts;
  if (!std::regex_search(text, parts, kPlain, std::regex_constants::match_continuous))
    throw Error("its header does not describe a plain array");
  Header header{.type = type_of(parts.str(1)), .fortran_order = parts[2] == "True"};
  const auto shape = parts.str(3);
  const auto skip = [&](std::size_t at) {
    return std::min(shape.find_first_not_of(" \n", at), shape.size());
  };
  for (auto at = skip(0); at < shape.size(); at = skip(at)) {
    const auto* first = shape.data() + at;
    const auto [end, problem] =
        std::from_chars(first, shape.data() + shape.size(), header.shape.emplace_back());
    if (problem == std::errc::result_out_of_range) throw Error("its shape is too large");
    if (problem != std::errc()) throw Error("its shape is not a list of integers");
    at = skip(at + static_cast<std::size_t>(end - first));
    if (at < shape.size() && shape[at++] != ',') throw Error("its shape is not a list of integers");
  }
  return header;
}

/// Reads the header at the start of an array's bytes.
Header read_header(std::string_view array) {
  constexpr std::size_t kMaxHeader = 4096, kStart = 8;
  const auto check_size = [&](std::size_t wanted) {
    if (array.size() < wanted) throw Error("is truncated");
  };
  check_size(kStart);
  if (!array.starts_with("\x93NUMPY")) throw Error("it is not a .npy array");
  const std::size_t width = array[6] == 1 ? 2 : 4;  // bytes of the header length, by version
  check_size(kStart + width);
  std::uint32_t length = 0;
  std::memcpy(&length, array.data() + kStart, width);
  if (length > kMaxHeader) throw Error("invalid header size: " + std::to_string(length) + " bytes");
  check_size(kStart + width + length);
  auto header = parse(std::string(array.substr(kStart + width, length)));
  header.bytes = kStart + width + length;
  return header;
}

at::Tensor read_array(const std::string& array) {
  const auto header = read_header(array);
  const auto bytes = byte_count(header.shape, bytes_type(header.type));
  if (!bytes || *bytes != array.size() - header.bytes)
    throw Error("its shape and type do not match its " + std::to_string(array.size()) + " bytes");
  auto tensor =
      at::empty(stored_shape(header.shape, header.fortran_order), bytes_type(header.type));
  if (*bytes > 0) std::memcpy(tensor.mutable_data_ptr(), array.data() + header.bytes, *bytes);
  return in_c_order(of_type(tensor, header.type), header.fortran_order);
}

NamedTensors read_arrays(const Archive& archive) {
  NamedTensors tensors;
  for (std::size_t entry = 0; entry < archive.entries().size(); ++entry) {
    auto name = archive.entries()[entry].name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    try {
      tensors.emplace_back(name, read_array(archive.read(entry)));
    } catch (const Error& problem) {
      throw Error("array '" + name + "': " + problem.what());
    }
  }
  return tensors;
}

/// Returns a header as NumPy writes it, padded so that the values after it are aligned.
std::string header_of(const at::Tensor& tensor) {
  constexpr std::size_t kStart = 10, kAlignment = 64;
  const auto type = name_of(&TensorType::numpy, tensor.scalar_type());
  std::string shape;
  for (const auto side : tensor.sizes()) shape += std::to_string(side) + ",";
  auto text = std::string("{'descr': '") + (type.ends_with('1') ? "|" : "<") + std::string(type) +
              "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const auto length = (kStart + text.size() + kAlignment) / kAlignment * kAlignment - kStart;
  text.resize(length - 1, ' ');
  const std::string version("\1\0", 2);
  return "\x93NUMPY" + version + static_cast<char>(length & 255) + static_cast<char>(length >> 8) +
         text + "\n";
}

}  // namespace

NamedTensors read_npz(const std::filesystem::path& file) try {
  return read_arrays(Archive(file));
} catch (const Error& problem) {
  throw Error(file.string() + ": " + problem.what());
}

void write_npz(const std::filesystem::path& file, const NamedTensors& tensors) {
  std::vector<std::string> arrays;
  for (const auto& [name, tensor] : tensors) try {
      const auto plain = tensor.detach().cpu().contiguous();
      arrays.push_back(header_of(plain));
      arrays.back().append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
    } catch (const Error& problem) {
      throw Error(file.string() + ": '" + name + "': " + problem.what());
    }
  ArchiveParts parts;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    parts.emplace_back(tensors[i].first + std::string(kSuffix), arrays[i]);
  write_archive(file, parts);
}

}  // namespace millrace
