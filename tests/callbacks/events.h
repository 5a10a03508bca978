// Reads TensorBoard event files in tests.
#pragma once

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/files.h"
#include "millrace/callbacks/common/event_records.h"
#include "millrace/dataflow/store/remote/tf_record.h"

namespace millrace::testing {

template <class T>
T read_little_endian(std::string_view bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(bytes.at(i))) << (8 * i);
  return value;
}

/// Returns the payloads of a file's records. Throws if a length or a checksum is wrong.
inline std::vector<std::string> payloads(std::string_view bytes) {
  const auto check = [](std::string_view part, std::string_view stored) {
    const auto crc = crc32c(part);
    const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
    if (masked != read_little_endian<std::uint32_t>(stored))
      throw std::runtime_error("wrong checksum");
  };
  std::vector<std::string> all;
  while (!bytes.empty()) {
    const auto size = read_little_endian<std::uint64_t>(bytes);
    check(bytes.substr(0, 8), bytes.substr(8, 4));
    all.emplace_back(bytes.substr(12, size));
    check(all.back(), bytes.substr(12 + size, 4));
    bytes.remove_prefix(12 + size + 4);
  }
  return all;
}

/// The fields of a protobuf message: varints as numbers, fixed-width fields as their bits,
/// everything else as bytes.
struct Fields {
  std::map<int, std::vector<std::string>> bytes;
  std::map<int, std::uint64_t> numbers;

  explicit Fields(std::string_view message) {
    while (!message.empty()) {
      const auto key = varint(message);
      const auto field = static_cast<int>(key >> 3);
      const auto fixed = [&](std::size_t size) {
        std::string padded(message.substr(0, size));
        padded.resize(8, '\0');
        numbers[field] = read_little_endian<std::uint64_t>(padded);
        message.remove_prefix(size);
      };
      if ((key & 7) == 0) numbers[field] = varint(message);
      if ((key & 7) == 1) fixed(8);
      if ((key & 7) == 5) fixed(4);
      if ((key & 7) != 2) continue;
      const auto size = varint(message);
      bytes[field].emplace_back(message.substr(0, size));
      message.remove_prefix(size);
    }
  }

 private:
  static std::uint64_t varint(std::string_view& from) {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(from.at(0));
      from.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  }
};

/// Returns all scalars of a run's event files except times, as "NAME STEP VALUE" in file order.
inline std::vector<std::string> scalars_of_events(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(run / "tensorboard"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<std::string> all;
  for (const auto& file : files)
    for (const auto& payload : payloads(read_file(file))) {
      const Fields event(payload);
      if (!event.bytes.contains(5)) continue;
      const Fields value(Fields(event.bytes.at(5)[0]).bytes.at(1)[0]);
      const auto& name = value.bytes.at(1)[0];
      if (!value.numbers.contains(2) || name.starts_with("time")) continue;
      const auto bits = static_cast<std::uint32_t>(value.numbers.at(2));
      all.push_back(name + " " + std::to_string(event.numbers.at(2)) + " " +
                    std::to_string(std::bit_cast<float>(bits)));
    }
  return all;
}

}  // namespace millrace::testing
