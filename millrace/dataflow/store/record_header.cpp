#include "millrace/dataflow/store/record_header.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <msgpack.hpp>
#include <tuple>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// A header is these eight bytes, the version, the digest of what follows (both 64 bits) and a msgpack array.
constexpr std::string_view kMagic = "millrec\n";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kFront = 8 + 8 + 8;

using Numbers = std::vector<std::uint64_t>;
using Body =
    std::tuple<std::vector<std::string>, Numbers, Numbers, std::uint64_t, std::uint64_t, Numbers,
               std::uint64_t>;  // the members of RecordHeader

/// A file read in pieces.
class Pieces {
 public:
  explicit Pieces(const fs::path& file) : name_(file.string()), in_(file, std::ios::binary) {}

  void read(std::uint64_t offset, char* out, std::size_t count) {
    in_.seekg(static_cast<std::streamoff>(offset));
    if (!in_.read(out, static_cast<std::streamsize>(count)))
      throw Error(name_ + ": cannot be read");
  }

 private:
  std::string name_;
  std::ifstream in_;
};

std::uint64_t digest_pages(const fs::path& file, std::uint64_t page_bytes,
                           const std::vector<std::uint64_t>& numbers) {
  Pieces pieces(file);
  std::string page(page_bytes, '\0');
  std::uint64_t sum = 0;
  for (const auto number : numbers) {
    pieces.read(number * page_bytes, page.data(), page.size());
    sum = digest(page.data(), page.size(), sum);
  }
  return sum;
}

std::string numbered(std::uint64_t number) {
  std::string key(sizeof(number), '\0');
  for (auto byte = key.rbegin(); byte != key.rend(); ++byte, number >>= 8)
    *byte = static_cast<char>(number & 0xFF);
  return key;
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

std::string bytes_of(std::uint64_t number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

}  // namespace

std::string annotations_key(std::int64_t index) {
  return numbered(static_cast<std::uint64_t>(index));
}
std::string image_key(std::int64_t index) {
  return numbered(std::uint64_t{1} << 63 | static_cast<std::uint64_t>(index));
}

void seal(const fs::path& records, std::uint64_t page_bytes, RecordHeader& header) {
  // The front of an LMDB page: its number (8 bytes), 2 bytes, flags (2), and of a value's pages how many (4).
  constexpr std::uint16_t kValue = 0x04;
  header.file_bytes = fs::file_size(records);
  header.page_bytes = page_bytes;
  header.tree_pages.clear();
  Pieces pieces(records);
  for (std::uint64_t page = 0; page < header.file_bytes / page_bytes;) {
    char front[16];
    pieces.read(page * page_bytes, front, sizeof(front));
    std::uint16_t flags = 0;
    std::uint32_t count = 0;
    std::memcpy(&flags, front + 10, sizeof(flags));
    std::memcpy(&count, front + 12, sizeof(count));
    const bool value = flags & kValue;
    if (!value) header.tree_pages.push_back(page);
    page += value && count > 0 ? count : 1;
  }
  header.tree_digest = digest_pages(records, page_bytes, header.tree_pages);
}

void check_seal(const fs::path& records, const RecordHeader& header) {
  std::error_code missing;
  const auto bytes = fs::file_size(records, missing);
  if (missing || bytes != header.file_bytes)
    throw Error(fmt::format(
        "{}: is {} bytes, but {} were packed: it was cut short or is another's; pack it again",
        records.string(), missing ? 0 : bytes, header.file_bytes));
  if (digest_pages(records, header.page_bytes, header.tree_pages) != header.tree_digest)
    throw Error(records.string() +
                ": is damaged where it says which record lies where; pack it again");
}

void write_header(const fs::path& file, const RecordHeader& header) {
  msgpack::sbuffer body;
  msgpack::pack(body, Body(header.classes, header.annotations, header.images, header.file_bytes,
                           header.page_bytes, header.tree_pages, header.tree_digest));
  write_file_atomically(file, std::string(kMagic) + bytes_of(kVersion) +
                                  bytes_of(digest(body.data(), body.size())) +
                                  std::string(body.data(), body.size()));
}

RecordHeader read_header(const fs::path& file) {
  if (!fs::exists(file))
    throw ConfigError(fmt::format(
        "{}: no record store: there is no '{}'; make one with `trainer pack` (a folder that ends "
        "in .part is a pack that was not finished)",
        file.parent_path().string(), file.filename().string()));
  const auto bytes = read_file(file);
  if (bytes.size() < kFront || !bytes.starts_with(kMagic))
    throw Error(file.string() + ": is not the header of a record store");
  if (const auto version = number_at(bytes, 8); version != kVersion)
    throw Error(
        fmt::format("{}: is of version {}, but this program reads version {}; pack it again",
                    file.string(), version, kVersion));
  const std::string_view body = std::string_view(bytes).substr(kFront);
  if (digest(body.data(), body.size()) != number_at(bytes, 16))
    throw Error(file.string() + ": is damaged: its checksum is wrong; pack it again");
  try {
    RecordHeader header;
    std::tie(header.classes, header.annotations, header.images, header.file_bytes,
             header.page_bytes, header.tree_pages, header.tree_digest) =
        msgpack::unpack(body.data(), body.size()).get().as<Body>();
    return header;
  } catch (const std::exception& problem) {
    throw Error(fmt::format("{}: is no header: {}", file.string(), problem.what()));
  }
}

}  // namespace millrace
