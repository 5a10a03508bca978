#include "millrace/base/disk/part_folder.h"

#include <fcntl.h>
#include <stdio.h>

#include <system_error>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/repeated.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns the path without a final slash: "data/sample/" and "data/sample" are the same folder.
fs::path without_slash(fs::path path) {
  path = fs::absolute(path).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

fs::path with_suffix(fs::path folder, const char* suffix) { return folder += suffix; }

/// Throws filesystem_error.
void move(const fs::path& from, const fs::path& to) {
  if (const auto problem = rename_path(from, to))
    throw fs::filesystem_error("cannot rename", from, to, problem);
}

void exchange(const fs::path& a, const fs::path& b) {
  if (repeated([&] {
        return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
      }) == 0)
    return;
  const auto aside = with_suffix(b, ".replaced.part");  // for file systems without RENAME_EXCHANGE
  fs::remove_all(aside);
  move(b, aside);
  move(a, b);
  move(aside, a);
}

}  // namespace

PartFolder::PartFolder(fs::path folder, Existing existing)
    : folder_(without_slash(std::move(folder))),
      part_(with_suffix(folder_, ".part")),
      existing_(existing) {
  refuse_existing();
  make_writable_folder(part_);
  if (existing_ == Existing::refuse) {
    lock_.emplace(part_);
    refuse_existing();  // the previous holder of the lock may have published the folder
  }
  for (const auto& left_over : fs::directory_iterator(part_)) fs::remove_all(left_over);
}

PartFolder::~PartFolder() {
  std::error_code ignored;
  fs::remove_all(part_, ignored);  // after an exchange, this is the old folder
}

void PartFolder::publish() try {
  sync_path(part_);
  if (existing_ == Existing::replace && fs::exists(folder_))
    exchange(part_, folder_);
  else
    move(part_, folder_);
  sync_path(folder_.parent_path());
} catch (const fs::filesystem_error& problem) {
  throw Error(folder_.string() + ": cannot be created: " + problem.code().message());
}

void PartFolder::refuse_existing() const {
  if (existing_ == Existing::refuse && fs::exists(fs::symlink_status(folder_)))
    throw ConfigError(folder_.string() + ": already exists; choose another folder or delete it");
}

}  // namespace millrace
