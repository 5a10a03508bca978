#include "millrace/dataflow/store/remote/range_cache.h"

#include <utility>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"

namespace millrace {

namespace fs = std::filesystem;

RangeCache::RangeCache(fs::path folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {
  make_writable_folder(folder_);
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    std::error_code gone;  // another process may remove the file
    if (entry.is_regular_file(gone)) bytes_ += entry.file_size(gone);
  }
}

std::optional<std::string> RangeCache::get(const std::string& key) const try {
  const auto file = file_of(key);
  if (!fs::exists(file)) return {};
  return read_file(file);
} catch (const Error&) {
  return {};
}

void RangeCache::put(const std::string& key, std::string_view bytes) try {
  if (bytes_ + bytes.size() > most_bytes_) return;
  const auto file = file_of(key);
  fs::create_directories(file.parent_path());
  replace_file(file, std::span(&bytes, 1));
  bytes_ += bytes.size();
} catch (const std::exception& problem) {
  if (!reported_.exchange(true)) log_warning("{}; nothing more is cached", problem.what());
}

void RangeCache::remove(const std::string& key) {
  const auto file = file_of(key);
  std::error_code missing;
  const auto size = fs::file_size(file, missing);
  if (!missing && fs::remove(file, missing)) bytes_ -= size;
}

fs::path RangeCache::file_of(const std::string& key) const {
  const auto [high, low] = wide_digest(key.data(), key.size());
  const auto name = hex(high) + hex(low);
  return folder_ / name.substr(0, 2) / name;
}

}  // namespace millrace
