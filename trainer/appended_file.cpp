#include "millrace/trainer/appended_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/repeated.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(file, missing);
  return missing ? 0 : size;
}

}  // namespace

void append_to(const std::filesystem::path& file, std::string_view bytes) {
  const UniqueFd out(repeated(
      [&] { return ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644); }));
  if (!out) throw Error(file.string() + ": cannot be written: " + std::strerror(errno));
  const auto size = ::lseek(out.get(), 0, SEEK_END);
  try {
    write_all(out, bytes, file);
  } catch (const Error&) {  // a partial line would corrupt the next one
    if (size >= 0) static_cast<void>(repeated([&] { return ::ftruncate(out.get(), size); }));
    throw;
  }
}

void cut_file(const std::filesystem::path& file, std::uintmax_t size) {
  if (size_of(file) <= size) return;
  if (repeated([&] { return ::truncate(file.c_str(), static_cast<off_t>(size)); }) != 0)
    throw Error(file.string() + ": cannot be truncated: " + std::strerror(errno));
}

void AppendedFile::open(const TrainState& state, std::filesystem::path file) {
  if (const auto mark = resume_mark(state))
    cut_file(mark->file.empty() ? file : file.parent_path() / mark->file, mark->bytes);
  file_ = std::move(file);
}

std::optional<AppendedFile::Mark> AppendedFile::resume_mark(const TrainState& state) const {
  return loaded_ || state.at.step > 0 ? loaded_ : Mark{};
}

void AppendedFile::append(std::string_view bytes) {
  drop_provisional();
  append_to(file_, bytes);
}

void AppendedFile::drop_provisional() {
  if (lasting_) cut_file(file_, *std::exchange(lasting_, std::nullopt));
}

void AppendedFile::append_provisionally(std::string_view bytes) {
  if (!lasting_) lasting_ = size_of(file_);
  append_to(file_, bytes);
}

nlohmann::json AppendedFile::state() const {
  return {{"file", file_.filename().string()}, {"bytes", lasting_ ? *lasting_ : size_of(file_)}};
}

void AppendedFile::load(const nlohmann::json& state) {
  loaded_ = {state.at("file").get<std::string>(), state.at("bytes").get<std::uintmax_t>()};
}

}  // namespace millrace
