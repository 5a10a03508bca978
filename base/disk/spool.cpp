#include "millrace/base/disk/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

[[noreturn]] void fail(const std::filesystem::path& folder, std::string_view what) {
  throw Error(fmt::format("{}: {}: {}", folder.string(), what, std::strerror(errno)));
}

}  // namespace

Spool::Spool(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::string name = folder_ / ".millrace-XXXXXX";
  fd_ = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd_) fail(folder_, "cannot create a file in this folder");
  ::unlink(name.c_str());
}

void Spool::add(std::string_view bytes) {
  write_all(fd_, bytes, folder_ / "(a temporary file)");
  size_ += bytes.size();
}

SharedBytes Spool::mapped() const {
  return map_file(fd_, size_, folder_, "cannot map a file of this folder");
}

void release_pages(std::string_view mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data());
  const auto first = (begin + page - 1) / page * page, last = (begin + mapped.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace millrace
