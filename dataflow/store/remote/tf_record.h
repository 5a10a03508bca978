// TFRecord files: messages one after the other, each with its length and checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {

/// CRC-32C (Castagnoli), as RFC 3720 has it.
std::uint32_t crc32c(std::string_view bytes);

/// A message as such a file has it.
std::string tf_record(std::string_view message);

/// Calls `visit` with each message and its begin. Throws Error naming file and byte if a checksum
/// is wrong or the file was cut short.
void read_tf_records(
    const ByteSource& file,
    const std::function<void(std::string_view message, std::uint64_t begin)>& visit);

}  // namespace millrace
