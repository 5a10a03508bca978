#include "callbacks/metrics_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/errors.h"
#include "base/files.h"

namespace millrace {
namespace {

bool is_at_most(const std::string& line, std::int64_t step) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.contains("step") && json["step"].is_number() &&
         json["step"] <= step;
}

}  // namespace

void append_line(const std::filesystem::path& file, const std::string& line) {
  const auto bytes = line + "\n";
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool written =
      out >= 0 && ::write(out, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int problem = errno;
  if (out >= 0) ::close(out);
  if (!written) throw Error(file.string() + ": cannot be written: " + std::strerror(problem));
}

void drop_lines_after(const std::filesystem::path& file, std::int64_t step) {
  if (!std::filesystem::exists(file)) return;
  const auto before = read_file(file);
  std::istringstream lines(before);
  std::string line, kept;
  while (std::getline(lines, line) && !lines.eof())  // at the end: a line without its newline
    if (is_at_most(line, step)) kept += line + "\n";
  if (kept != before) write_file_atomically(file, kept);
}

}  // namespace millrace
