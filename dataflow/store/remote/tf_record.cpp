#include "millrace/dataflow/store/remote/tf_record.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "millrace/base/errors.h"
#include "millrace/base/proto_message.h"

namespace millrace {
namespace {

constexpr auto kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit)
      table[i] = table[i] >> 1 ^ ((table[i] & 1) != 0 ? 0x82F63B78U : 0);
  }
  return table;
}();

/// Returns a masked checksum: TFRecord masks them, since checksums of data that contains checksums
/// are weak.
std::uint32_t masked_crc(std::string_view bytes) {
  const auto crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

template <class T>
T number_at(std::string_view bytes, std::size_t offset) {
  T number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

constexpr std::uint64_t kMostMessage = INT32_MAX;  // bytes; the limit of protocol buffers
constexpr std::uint64_t kHead = 8 + 4, kTail = 4;  // length, its checksum; message's checksum

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  return ~crc;
}

std::string tf_record(std::string_view message) {
  std::string record;
  put_little_endian(record, std::uint64_t{message.size()});
  put_little_endian(record, masked_crc(record));
  record += message;
  put_little_endian(record, masked_crc(message));
  return record;
}

void read_tf_records(
    const ByteSource& file,
    const std::function<void(std::string_view message, std::uint64_t begin)>& visit) {
  for (std::uint64_t at = 0; at < file.size();) {
    const auto fail = [&](std::string_view why) {
      throw Error(fmt::format("{}: {} at byte {}", file.name(), why, at));
    };
    const auto left = file.size() - at;
    if (left < kHead + kTail) fail("truncated TFRecord file");
    const auto head = file.read({at, kHead});
    const auto length = number_at<std::uint64_t>(head.bytes, 0);
    if (masked_crc(head.bytes.substr(0, 8)) != number_at<std::uint32_t>(head.bytes, 8))
      fail("not a TFRecord: checksum mismatch of a length");
    if (length > kMostMessage) fail("the record is longer than a message can be");
    if (length > left - kHead - kTail) fail("TFRecord file truncated in a record");
    const auto body = file.read({at + kHead, length + kTail});
    const auto message = body.bytes.substr(0, length);
    if (masked_crc(message) != number_at<std::uint32_t>(body.bytes, length))
      fail("checksum mismatch of a record");
    visit(message, at + kHead);
    at += kHead + length + kTail;
  }
}

}  // namespace millrace
