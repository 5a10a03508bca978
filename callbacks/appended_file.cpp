#include "callbacks/appended_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/errors.h"

namespace millrace {
void append_to(const std::filesystem::path& file, std::string_view bytes) {
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written =
      out >= 0 && ::write(out, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int problem = errno;
  if (out >= 0) ::close(out);
  if (!written) throw Error(file.string() + ": cannot be written: " + std::strerror(problem));
}

void cut_file(const std::filesystem::path& file, std::uintmax_t size) {
  std::error_code problem;
  const auto present = std::filesystem::file_size(file, problem);
  if (problem || present <= size) return;
  std::filesystem::resize_file(file, size, problem);
  if (problem) throw Error(file.string() + ": cannot be cut: " + problem.message());
}

}  // namespace millrace
