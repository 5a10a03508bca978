#include "millrace/dataflow/serving/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <random>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::serving {
namespace {

// Maximum mapped files; beyond it, all files without a batch in use are unmapped.
constexpr std::size_t kMostMaps = 64;
constexpr std::size_t kProbeBytes = 4096;
constexpr std::align_val_t kAlignment{64};

struct File {
  UniqueFd descriptor;
  std::size_t bytes = 0;
  std::uint64_t number = 0;
};

/// Creates and maps a file. Throws Error.
std::pair<File, void*> make_file(std::size_t bytes, std::uint64_t number) {
  File file{UniqueFd(::memfd_create("millrace-batch", MFD_CLOEXEC)), bytes, number};
  const int fd = file.descriptor.get();
  const auto fail = [&](int problem) {
    throw Error(fmt::format("cannot allocate {} bytes of shared memory: {}", bytes,
                            std::strerror(problem)));
  };
  if (!file.descriptor || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail(errno);
  // Allocated at once, so that running out of memory fails here and not in a later write.
  if (const auto problem = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes))) fail(problem);
  auto* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) fail(errno);
  return {std::move(file), memory};
}

/// Maps the beginning of a process's open file; returns nullptr if it is shorter or cannot be
/// opened.
std::shared_ptr<std::uint8_t[]> map(std::int64_t process, std::int64_t descriptor,
                                    std::size_t bytes) {
  const auto name = fmt::format("/proc/{}/fd/{}", process, descriptor);
  const UniqueFd fd(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return nullptr;
  struct stat state {};
  void* memory = MAP_FAILED;
  if (::fstat(fd.get(), &state) == 0 && S_ISREG(state.st_mode) && bytes > 0 &&
      static_cast<std::uint64_t>(state.st_size) >= bytes)
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<std::uint8_t*>(memory), [bytes](std::uint8_t* p) { ::munmap(p, bytes); }};
}

}  // namespace

struct SharedMemory::Files {
  void* allocate(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    try {
      auto [file, memory] = make_file(bytes, ++made);
      by_address.emplace(memory, std::move(file));
      return memory;
    } catch (const Error&) {
      return ::operator new(bytes, kAlignment);  // sent through sockets, which is slower
    }
  }
  void release(void* memory) {
    const std::lock_guard lock(mutex);
    const auto found = by_address.extract(memory);
    if (found.empty()) return ::operator delete(memory, kAlignment);
    ::munmap(memory, found.mapped().bytes);
  }

  std::mutex mutex;
  std::map<const void*, File> by_address;
  std::uint64_t made = 0;
};

SharedMemory::SharedMemory()
    : files_(std::make_shared<Files>()),
      probe_(files_->allocate(kProbeBytes),
             [files = files_](void* memory) { files->release(memory); }) {
  std::random_device random;
  token_ = std::uint64_t{random()} << 32 | random();
  std::memcpy(probe_.get(), &token_, sizeof(token_));
}

MemorySource SharedMemory::source() const {
  return {[files = files_](std::size_t bytes) { return files->allocate(bytes); },
          [files = files_](void* memory) { files->release(memory); }};
}

std::optional<SharedPiece> SharedMemory::find(const void* buffer, std::size_t bytes,
                                              std::int64_t piece) const {
  const std::lock_guard lock(files_->mutex);
  const auto found = files_->by_address.find(buffer);
  if (found == files_->by_address.end()) return std::nullopt;
  const auto& file = found->second;
  return SharedPiece{piece, file.descriptor.get(), file.number, file.bytes, bytes};
}

std::optional<SharedFile> SharedMemory::probe() const {
  const auto piece = find(probe_.get(), kProbeBytes, 0);
  if (!piece) return std::nullopt;
  return SharedFile{::getpid(), piece->descriptor, token_};
}

std::unique_ptr<SharedView> SharedView::open(const SharedFile& probe) {
  const auto memory = map(probe.process, probe.descriptor, kProbeBytes);
  if (!memory || std::memcmp(memory.get(), &probe.token, sizeof(probe.token)) != 0) return nullptr;
  return std::unique_ptr<SharedView>(new SharedView(probe));
}

Frame SharedView::take(const SharedPiece& piece) {
  auto& memory = maps_[piece.file];
  if (!memory) memory = map(probe_.process, piece.descriptor, piece.file_bytes);
  if (!memory)
    throw DataError("message", fmt::format("shared file {} of process {} not found",
                                           piece.descriptor, probe_.process));
  {
    const std::lock_guard lock(pieces_->mutex);
    pieces_->held.insert(piece.piece);
  }
  auto let_go = [owner = memory, pieces = pieces_, piece = piece.piece](std::uint8_t*) {
    const std::lock_guard lock(pieces->mutex);
    pieces->held.erase(piece);
    pieces->released.push_back(piece);
  };
  Frame frame{{memory.get(), std::move(let_go)}, piece.bytes};
  if (maps_.size() > kMostMaps) maps_.clear();
  return frame;
}

std::vector<std::int64_t> SharedView::take_released() {
  const std::lock_guard lock(pieces_->mutex);
  return std::exchange(pieces_->released, {});
}

std::vector<std::int64_t> SharedView::held() const {
  const std::lock_guard lock(pieces_->mutex);
  return {pieces_->held.begin(), pieces_->held.end()};
}

bool is_running(std::int64_t process) {
  return ::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

}  // namespace millrace::serving
