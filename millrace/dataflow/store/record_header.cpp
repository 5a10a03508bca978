#include "millrace/dataflow/store/record_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <msgpack.hpp>
#include <tuple>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

// A header is these eight bytes, the version, the digest of what follows (both 64 bits) and a
// msgpack array. Version 1 had its records in an LMDB file.
constexpr std::string_view kMagic = "millrec\n";
constexpr std::uint64_t kVersion = 2;
constexpr std::size_t kFront = 8 + 8 + 8;

using Numbers = std::vector<std::uint64_t>;
using Body = std::tuple<std::vector<std::string>, Numbers, Numbers>;  // members of RecordHeader

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

void write_header(const std::filesystem::path& file, const RecordHeader& header) {
  msgpack::sbuffer body;
  msgpack::pack(body, Body(header.classes, header.ends, header.digests));
  write_file_atomically(file, std::string(kMagic) + bytes_of(kVersion) +
                                  bytes_of(digest(body.data(), body.size())) +
                                  std::string(body.data(), body.size()));
}

RecordHeader read_header(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file))
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
  if (digest(body) != number_at(bytes, 16))
    throw Error(file.string() + ": is damaged: its checksum is wrong; pack it again");
  try {
    RecordHeader header;
    std::tie(header.classes, header.ends, header.digests) =
        msgpack::unpack(body.data(), body.size()).get().as<Body>();
    if (header.ends.size() % kRecordValues != 0 || header.ends.size() != header.digests.size() ||
        !std::ranges::is_sorted(header.ends))
      throw std::invalid_argument("its values have no order");
    return header;
  } catch (const std::exception& problem) {
    throw Error(fmt::format("{}: is no header: {}", file.string(), problem.what()));
  }
}

}  // namespace millrace
