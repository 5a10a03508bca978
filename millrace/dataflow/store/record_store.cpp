#include "millrace/dataflow/store/record_store.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <msgpack.hpp>
#include <tuple>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/part_folder.h"
#include "millrace/dataflow/image/image_file.h"
#include "millrace/dataflow/store/sample_codec.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

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

/// Written atomically, last of all: a store without it is unfinished.
void write_header(const fs::path& file, const RecordHeader& header) {
  msgpack::sbuffer body;
  msgpack::pack(body, Body(header.classes, header.ends, header.digests));
  const std::uint64_t numbers[] = {kVersion, digest(body.data(), body.size())};
  const std::string_view parts[] = {kMagic,
                                    {reinterpret_cast<const char*>(numbers), sizeof(numbers)},
                                    {body.data(), body.size()}};
  write_file_atomically(file, parts);
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
  const auto body = std::string_view(bytes).substr(kFront);
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

std::string encoded(Sample sample) {
  sample.path = fs::path(sample.path).filename().string();
  return encode(sample);
}

/// Writes all values, and into `header` where they end.
void write_records(const Source<Sample>& source, const fs::path& file, RecordHeader& header) {
  const UniqueFd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!out)
    throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
  const auto add = [&](std::string_view value) {
    write_all(out, value, file);
    header.ends.push_back(header.file_bytes() + value.size());
    header.digests.push_back(digest(value));
  };
  for (std::int64_t i = 0; i < source.size(); ++i) add(encoded(without_outlines(source.about(i))));
  for (std::int64_t i = 0; i < source.size(); ++i) add(encoded(source[i]));
  for (std::int64_t i = 0; i < source.size(); ++i) add(read_image_file(source.about(i).path));
}

}  // namespace

void pack_records(const Source<Sample>& source, const std::vector<std::string>& classes,
                  const fs::path& folder) {
  PartFolder part(folder, PartFolder::Existing::refuse);
  RecordHeader header{.classes = classes};
  write_records(source, records_file(part.path()), header);
  sync_path(records_file(part.path()));
  write_header(header_file(part.path()), header);
  part.publish();
}

RecordStore::RecordStore(const fs::path& folder)
    : file_(records_file(folder)), header_(read_header(header_file(folder))) {
  std::error_code missing;
  const auto bytes = fs::file_size(file_, missing);
  if (missing || bytes != header_.file_bytes())
    throw Error(fmt::format(
        "{}: is {} bytes, but {} were packed: it was cut short or belongs to another store; pack "
        "it again",
        file_.string(), missing ? 0 : bytes, header_.file_bytes()));
  records_ = map_file(file_);
}

Sample RecordStore::operator[](std::int64_t index) const {
  auto sample = decoded(RecordValue::sample, index);
  const auto image = value(RecordValue::image, index);
  sample.encoded = {records_.data, image.bytes, image.digest};
  return sample;
}

Sample RecordStore::about(std::int64_t index) const { return decoded(RecordValue::about, index); }

RecordStore::Value RecordStore::value(RecordValue kind, std::int64_t index) const {
  const auto place =
      static_cast<std::size_t>(kind) * header_.records() + static_cast<std::size_t>(index);
  const auto begin = place == 0 ? 0 : header_.ends[place - 1];
  return {{reinterpret_cast<const char*>(records_.data.get()) + begin, header_.ends[place] - begin},
          header_.digests[place]};
}

Sample RecordStore::decoded(RecordValue kind, std::int64_t index) const {
  const auto where = fmt::format("{} record {}", file_.string(), index);
  const auto value = this->value(kind, index);
  if (digest(value.bytes) != value.digest)
    throw DataError(where, "its annotations are damaged: their checksum is wrong");
  auto sample = decode_sample(value.bytes, where);
  for (const auto label : sample.objects.classes)
    if (label >= std::ssize(classes()))
      throw DataError(where, fmt::format("has an object of class {}, but the store has {} classes",
                                         label, classes().size()));
  sample.path = fmt::format("{} ({})", where, sample.path);
  return sample;
}

}  // namespace millrace
