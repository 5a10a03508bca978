// Makes .npy arrays and .npz archives by hand, good and bad ones.
#pragma once

#include <zip.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/support/scratch.h"

namespace millrace::testing {

/// An array of version 1 or 2 with this header.
inline std::string npy(const std::string& header, const std::string& data, char version = 1) {
  return std::string("\x93NUMPY") + version + '\0' +
         little_endian(header.size(), version == 1 ? 2 : 4) + header + data;
}

inline void write_zip(const std::filesystem::path& file,
                      const std::map<std::string, std::string>& members) {
  zip_t* archive = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  if (!archive) throw std::runtime_error("zip_open");
  for (const auto& [name, bytes] : members)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0),
                 0);
  if (zip_close(archive) != 0) throw std::runtime_error("zip_close");
}

}  // namespace millrace::testing
