// Shared by all fuzz targets: the entry point, assertions, values taken from the input, and
// in-memory files.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// Aborts the run like a crash if the condition is false, so that libFuzzer keeps the input.
#define MILLRACE_LAW(holds)                                                      \
  do {                                                                           \
    if (!(holds)) {                                                              \
      std::fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #holds); \
      std::abort();                                                              \
    }                                                                            \
  } while (false)

namespace millrace::fuzz {

/// Takes values from the front of an input; returns zeros once the input is used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

  template <typename T>
  T take() {
    T value{};
    const std::size_t count = std::min(sizeof(T), bytes_.size());
    if (count > 0) std::memcpy(&value, bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return value;
  }

  bool empty() const { return bytes_.empty(); }
  std::string_view rest() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// The fuzz target: checks its assertions, and must not throw for any input.
void check(Input input);

/// An in-memory file with the given text, for functions that read files.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text = "") : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    MILLRACE_LAW(fd_ >= 0);
    MILLRACE_LAW(::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  millrace::fuzz::check({data, size});
  return 0;
}
