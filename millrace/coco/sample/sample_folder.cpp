#include "millrace/coco/sample/sample_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;

/// "data/sample/" names the same folder as "data/sample".
fs::path without_slash(fs::path path) {
  path = fs::absolute(path).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

PartFolder::PartFolder(fs::path folder)
    : folder_(without_slash(std::move(folder))), part_(folder_.string() + ".part") {
  refuse_existing();
  make_writable_folder(folder_.parent_path());
  make_writable_folder(part_);
  lock_.emplace(part_);
  refuse_existing();  // the process that held the lock may have been about to finish
  for (const auto& left_over : fs::directory_iterator(part_)) fs::remove_all(left_over);
}

PartFolder::~PartFolder() {
  std::error_code ignored;
  if (!part_.empty()) fs::remove_all(part_, ignored);
}

void PartFolder::publish() {
  if (::syncfs(lock_->descriptor()) != 0)
    throw Error(part_.string() + ": cannot be flushed to the disk: " + std::strerror(errno));
  std::error_code problem;
  fs::rename(part_, folder_, problem);
  if (problem) throw Error(folder_.string() + ": cannot be made: " + problem.message());
  part_.clear();
  sync_path(folder_.parent_path());
}

void PartFolder::refuse_existing() const {
  if (fs::exists(fs::symlink_status(folder_))) {
    throw Error(folder_.string() + ": exists already; remove it first, or name another folder");
  }
}

}  // namespace millrace::coco
