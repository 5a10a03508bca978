// A new file that is written sequentially.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {

class NewFile {
 public:
  /// Throws Error with the file and the system's reason, also if the file already exists.
  explicit NewFile(std::filesystem::path file)
      : file_(std::move(file)),
        fd_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
    if (!fd_)
      throw Error(fmt::format("{}: cannot write: {}", file_.string(), std::strerror(errno)));
  }

  void add(std::string_view bytes) {
    write_all(fd_, bytes, file_);
    bytes_ += bytes.size();
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::filesystem::path file_;
  const UniqueFd fd_;
  std::uint64_t bytes_ = 0;
};

}  // namespace millrace
