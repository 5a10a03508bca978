#include "cli/decode_floor.h"

#include <turbojpeg.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "base/files.h"

namespace millrace::cli {
namespace {

using UniqueTurboJpeg = std::unique_ptr<void, decltype([](void* handle) { tjDestroy(handle); })>;

const unsigned char* bytes_of(const std::string& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// The file's bytes, or nothing where it is no JPEG.
std::string read_jpeg(const std::string& file, void* decoder) {
  auto bytes = read_file(file);
  int width = 0, height = 0, subsampling = 0, space = 0;
  const bool usable = tjDecompressHeader3(decoder, bytes_of(bytes), bytes.size(), &width, &height,
                                          &subsampling, &space) == 0;
  return usable ? bytes : std::string();
}

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void decode(const std::string& jpeg, void* decoder, std::vector<std::uint8_t>& pixels) {
  int width = 0, height = 0, subsampling = 0, space = 0;
  tjDecompressHeader3(decoder, bytes_of(jpeg), jpeg.size(), &width, &height, &subsampling, &space);
  pixels.resize(std::size_t{3} * width * height);
  tjDecompress2(decoder, bytes_of(jpeg), jpeg.size(), pixels.data(), width, 0, height, TJPF_RGB, 0);
}

}  // namespace

DecodeFloor measure_decode_floor(std::span<const std::string> files, int threads, double seconds) {
  const UniqueTurboJpeg probe(tjInitDecompress());
  std::vector<std::string> jpegs;
  for (const auto& file : files)
    if (auto bytes = read_jpeg(file, probe.get()); !bytes.empty())
      jpegs.push_back(std::move(bytes));
  if (jpegs.empty()) return {};

  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  std::atomic<std::size_t> next = 0;
  std::atomic<double> cpu_s = 0;
  const auto work = [&] {
    const UniqueTurboJpeg decoder(tjInitDecompress());
    std::vector<std::uint8_t> pixels;
    const double before = thread_cpu_s();
    do decode(jpegs[next++ % jpegs.size()], decoder.get(), pixels);
    while (std::chrono::duration<double>(Clock::now() - began).count() < seconds);
    cpu_s += thread_cpu_s() - before;
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  }
  const double wall_s = std::chrono::duration<double>(Clock::now() - began).count();
  return {static_cast<double>(next) / wall_s, static_cast<double>(next) / cpu_s};
}

}  // namespace millrace::cli
