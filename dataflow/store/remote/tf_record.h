// TFRecord files: consecutive messages, each with its length and checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {

/// Returns CRC-32C (Castagnoli), as in RFC 3720.
std::uint32_t crc32c(std::string_view bytes);

/// Returns a message in the format of such a file.
std::string tf_record(std::string_view message);

/// Calls `visit` with each message and its offset. Throws Error with file and byte if a checksum is
/// wrong or the file is truncated.
void read_tf_records(
    const ByteSource& file,
    const std::function<void(std::string_view message, std::uint64_t begin)>& visit);

}  // namespace millrace
