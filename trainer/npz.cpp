#include "trainer/npz.h"

#include <ATen/ops/empty.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/errors.h"
#include "trainer/tensor_bytes.h"

namespace millrace {
namespace {

using UniqueZip = std::unique_ptr<zip_t, decltype(&zip_discard)>;
using UniqueZipFile = std::unique_ptr<zip_file_t, decltype(&zip_fclose)>;

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 9> kTypes = {
    {{"<f2", at::kHalf},
     {"<f4", at::kFloat},
     {"<f8", at::kDouble},
     {"<i8", at::kLong},
     {"<i4", at::kInt},
     {"<i2", at::kShort},
     {"|i1", at::kChar},
     {"|u1", at::kByte},
     {"|b1", at::kBool}}};

UniqueZip open_archive(const std::filesystem::path& file) {
  int code = 0;
  UniqueZip archive(zip_open(file.c_str(), ZIP_RDONLY, &code), zip_discard);
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw Error("cannot be read as .npz: " + why);
}

/// One array of an archive, read from its start.
class Member {
 public:
  Member(zip_t* archive, zip_uint64_t index)
      : file_(zip_fopen_index(archive, index, 0), zip_fclose) {
    if (!file_) throw Error(zip_strerror(archive));
  }

  void read(void* to, std::uint64_t bytes) {
    for (auto* at = static_cast<char*>(to); bytes > 0;) {
      const auto got = zip_fread(file_.get(), at, bytes);
      if (got < 0) throw Error(zip_file_strerror(file_.get()));
      if (got == 0) throw Error("ends too early");
      at += got;
      bytes -= static_cast<std::uint64_t>(got);
    }
  }

 private:
  UniqueZipFile file_;
};

struct Header {
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes;  // of the header itself
};

/// Walks along a header's text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  /// Goes past blanks and past `token`, if that is next.
  bool take(std::string_view token) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void expect(std::initializer_list<std::string_view> tokens) {
    for (const auto token : tokens)
      if (!take(token)) throw Error("its header is not a plain array's");
  }

  /// What comes before the next `end`, which is passed too.
  std::string_view until(std::string_view end) {
    const auto text = rest_.substr(0, rest_.find(end));
    rest_.remove_prefix(text.size());
    expect({end});
    return text;
  }

  std::int64_t number() {
    take("");
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(rest_.begin(), rest_.end(), value);
    if (problem == std::errc::result_out_of_range) throw Error("its shape is too large");
    if (problem != std::errc()) throw Error("its shape is not a list of whole numbers");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.begin()));
    return value;
  }

 private:
  std::string_view rest_;
};

at::ScalarType type_of(std::string_view name) {
  for (const auto& [known, type] : kTypes)
    if (name == known) return type;
  throw Error("unknown type '" + std::string(name) + "'");
}

/// From e.g. {'descr': '<f4', 'fortran_order': False, 'shape': (64, 3), }
Header parse(std::string_view text) {
  Header header{};
  Scanner scan(text);
  scan.expect({"{", "'descr'", ":", "'"});
  header.type = type_of(scan.until("'"));
  scan.expect({",", "'fortran_order'", ":"});
  if (scan.take("True")) throw Error("it is in Fortran order; save a C-ordered copy");
  scan.expect({"False", ",", "'shape'", ":", "("});
  while (!scan.take(")")) {
    header.shape.push_back(scan.number());
    if (scan.take(",")) continue;
    scan.expect({")"});
    break;
  }
  scan.take(",");
  scan.expect({"}"});
  return header;
}

Header read_header(Member& member) {
  constexpr std::uint32_t kMaxHeader = 4096;
  std::array<unsigned char, 8> start{};
  member.read(start.data(), start.size());
  if (std::memcmp(start.data(), "\x93NUMPY", 6) != 0) throw Error("it is no .npy array");
  const std::uint64_t width = start[6] == 1 ? 2 : 4;  // bytes of the header's length, by version
  std::uint32_t length = 0;
  member.read(&length, width);
  if (length > kMaxHeader)
    throw Error("its header would take " + std::to_string(length) + " bytes");
  std::string text(length, '\0');
  member.read(text.data(), length);
  auto header = parse(text);
  header.bytes = start.size() + width + length;
  return header;
}

at::Tensor read_array(zip_t* archive, zip_uint64_t index, const zip_stat_t& entry) {
  constexpr std::uint64_t kBestDeflate = 1032;  // deflate never packs tighter
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    throw Error("it is packed by an unknown method");
  if (entry.size / kBestDeflate > entry.comp_size) throw Error("its size is a lie");
  Member member(archive, index);
  const auto header = read_header(member);
  const auto bytes = byte_count(header.shape, header.type);
  if (!bytes || *bytes != entry.size - header.bytes)
    throw Error("its shape and type do not match its " + std::to_string(entry.size) + " bytes");
  auto tensor = at::empty(header.shape, header.type == at::kBool ? at::kByte : header.type);
  member.read(tensor.mutable_data_ptr(), *bytes);
  return header.type == at::kBool ? tensor.ne(0) : tensor;
}

NamedTensors read_arrays(zip_t* archive) {
  constexpr std::string_view kSuffix = ".npy";
  NamedTensors tensors;
  const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(archive, 0));
  for (zip_uint64_t index = 0; index < count; ++index) {
    zip_stat_t entry;
    constexpr auto kNeeded =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(archive, index, 0, &entry) != 0 || (entry.valid & kNeeded) != kNeeded)
      throw Error("entry " + std::to_string(index) + " of the archive is damaged");
    std::string name = entry.name;
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    try {
      tensors.emplace_back(name, read_array(archive, index, entry));
    } catch (const Error& problem) {
      throw Error("array '" + name + "': " + problem.what());
    }
  }
  return tensors;
}

}  // namespace

NamedTensors read_npz(const std::filesystem::path& file) try {
  return read_arrays(open_archive(file).get());
} catch (const Error& problem) {
  throw Error(file.string() + ": " + problem.what());
}

}  // namespace millrace
