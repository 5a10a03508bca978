// Tar files (POSIX ustar), in which WebDataset stores its samples.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {

/// Returns a member's header: 512 bytes for a regular file without owner or time, so that the same
/// members give the same bytes. REQUIRES: a name of at most 100 bytes.
std::string tar_header(std::string_view name, std::uint64_t size);
/// Returns the zeros after a member of this size.
std::string tar_padding(std::uint64_t size);
/// Returns the zeros at the end of a file.
std::string tar_end();

/// The location of a regular file in a tar file.
struct TarMember {
  std::string name;
  std::uint64_t begin = 0, size = 0;
};

/// Returns true if the file starts like a tar file.
bool is_tar(const ByteSource& file);

/// Calls `visit` with the regular files of a tar file in order: ustar, GNU tar (long names, large
/// sizes) and pax. Throws Error with file and byte if it is damaged or truncated, even between
/// members, since a tar file ends in zeros.
void read_tar(const ByteSource& file, const std::function<void(const TarMember&)>& visit);

}  // namespace millrace
