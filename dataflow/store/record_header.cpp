#include "millrace/dataflow/store/record_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <msgpack.hpp>
#include <stdexcept>
#include <tuple>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

// A header is these eight bytes, the version, the digest of the rest (both 64 bits) and a msgpack
// array. Version 1 had its records in an LMDB file; version 3 is version 2 with shards.
constexpr std::string_view kMagic = "millrec\n";
constexpr std::uint64_t kPlain = 2, kWithShards = 3;
constexpr std::size_t kFront = 8 + 8 + 8;
constexpr std::uint64_t kMostValue = INT32_MAX;  // bytes; the maximum that image decoders can count

using Numbers = std::vector<std::uint64_t>;
using Plain = std::tuple<std::vector<std::string>, Numbers, Numbers>;
using Shard = std::tuple<std::string, std::uint64_t, std::uint64_t>;
using WithShards =
    std::tuple<std::vector<std::string>, Numbers, Numbers, std::vector<Shard>, Numbers>;

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

/// Throws std::invalid_argument if a value is outside the files that the header describes.
void check(const RecordHeader& header) {
  const auto& ends = header.ends;
  const auto records = header.records();
  if (ends.size() % kRecordValues != 0 || ends.size() != header.digests.size() ||
      !std::ranges::is_sorted(ends))
    throw std::invalid_argument("values are not in order");
  const auto size = [&](std::size_t value) { return ends[value] - (value ? ends[value - 1] : 0); };
  for (std::size_t value = 0; value < ends.size(); ++value)
    if (size(value) > kMostValue)
      throw std::invalid_argument(
          fmt::format("value {} has {} bytes; the maximum is {}", value, size(value), kMostValue));
  if (header.shards.empty()) return;
  if (header.image_begins.size() != records)
    throw std::invalid_argument("the number of images differs from that of records");
  std::size_t record = 0;
  for (const auto& shard : header.shards) {
    if (shard.records > records - record)
      throw std::invalid_argument("the shards have more records than the header");
    for (const auto end = record + shard.records; record < end; ++record) {
      const auto bytes = size(2 * records + record);
      if (bytes > shard.bytes || header.image_begins[record] > shard.bytes - bytes)
        throw std::invalid_argument(
            fmt::format("the image of record {} is not in its shard '{}'", record, shard.name));
    }
  }
  if (record != records)
    throw std::invalid_argument("the shards have fewer records than the header");
}

RecordHeader unpacked(std::string_view body, std::uint64_t version) {
  // An array cannot have more elements than bytes, so its claimed size is checked before
  // allocation.
  const auto most = body.size();
  const msgpack::unpack_limit limit(most, most, most, most, most, /*depth=*/8);
  const auto object = msgpack::unpack(body.data(), body.size(), nullptr, nullptr, limit);
  RecordHeader header;
  if (version == kPlain) {
    std::tie(header.classes, header.ends, header.digests) = object.get().as<Plain>();
  } else {
    std::vector<Shard> shards;
    std::tie(header.classes, header.ends, header.digests, shards, header.image_begins) =
        object.get().as<WithShards>();
    for (auto& [name, bytes, records] : shards)
      header.shards.push_back({std::move(name), bytes, records});
  }
  check(header);
  return header;
}

}  // namespace

std::uint64_t RecordHeader::file_bytes() const {
  if (ends.empty()) return 0;
  return shards.empty() ? ends.back() : ends[2 * records() - 1];
}

void write_header(const std::filesystem::path& file, const RecordHeader& header) {
  msgpack::sbuffer body;
  if (header.shards.empty()) {
    msgpack::pack(body, Plain(header.classes, header.ends, header.digests));
  } else {
    std::vector<Shard> shards;
    for (const auto& shard : header.shards)
      shards.emplace_back(shard.name, shard.bytes, shard.records);
    msgpack::pack(
        body, WithShards(header.classes, header.ends, header.digests, shards, header.image_begins));
  }
  const std::uint64_t numbers[] = {header.shards.empty() ? kPlain : kWithShards,
                                   digest(body.data(), body.size())};
  const std::string_view parts[] = {kMagic,
                                    {reinterpret_cast<const char*>(numbers), sizeof(numbers)},
                                    {body.data(), body.size()}};
  write_file_atomically(file, parts);
}

bool is_whole_header(std::string_view bytes) {
  return bytes.size() < kFront || !bytes.starts_with(kMagic) ||
         digest(bytes.substr(kFront)) == number_at(bytes, 16);
}

RecordHeader read_header(std::string_view bytes, const std::string& file) {
  if (bytes.size() < kFront || !bytes.starts_with(kMagic))
    throw Error(file + ": not the header of a record store");
  const auto version = number_at(bytes, 8);
  if (version != kPlain && version != kWithShards)
    throw Error(fmt::format(
        "{}: version {} is not supported; this program reads versions {} and {}; pack it again",
        file, version, kPlain, kWithShards));
  const auto body = bytes.substr(kFront);
  if (digest(body) != number_at(bytes, 16))
    throw Error(file + ": damaged (checksum mismatch); pack it again");
  try {
    return unpacked(body, version);
  } catch (const std::exception& problem) {
    throw Error(fmt::format("{}: invalid header: {}", file, problem.what()));
  }
}

}  // namespace millrace
