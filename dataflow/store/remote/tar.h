// Tar files (POSIX ustar), as WebDataset keeps its samples in.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {

/// A member's header: 512 bytes of a regular file without owner or time, so that the same members
/// give the same bytes. REQUIRES: a name of at most 100 bytes.
std::string tar_header(std::string_view name, std::uint64_t size);
/// The zeros after a member of this size.
std::string tar_padding(std::uint64_t size);
/// The zeros at the end of a file.
std::string tar_end();

/// The place of a regular file in a tar file.
struct TarMember {
  std::string name;
  std::uint64_t begin = 0, size = 0;
};

/// Whether the file begins as a tar file does.
bool is_tar(const ByteSource& file);

/// Calls `visit` with the regular files of a tar file in their order: of ustar, GNU tar (long
/// names, large sizes) and pax. Throws Error naming file and byte if it is damaged or cut short,
/// also between members: a tar file ends in zeros.
void read_tar(const ByteSource& file, const std::function<void(const TarMember&)>& visit);

}  // namespace millrace
