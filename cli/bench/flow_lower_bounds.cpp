#include "millrace/cli/bench/flow_lower_bounds.h"

#include <turbojpeg.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/files.h"
#include "millrace/dataflow/image/bilinear.h"

namespace millrace::cli {
namespace {

using UniqueTurboJpeg = std::unique_ptr<void, decltype([](void* handle) { tjDestroy(handle); })>;
using Bytes = std::vector<std::uint8_t>;

struct Jpeg {
  std::string bytes;
  cv::Size size, delivered;

  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(bytes.data()); }
};

std::vector<Jpeg> read_jpegs(std::span<const DeliveredImage> images) {
  const UniqueTurboJpeg decoder(tjInitDecompress());
  std::vector<Jpeg> jpegs;
  for (const auto& image : images) {
    Jpeg jpeg{read_file(image.file), {}, image.delivered};
    int subsampling = 0, space = 0;
    if (tjDecompressHeader3(decoder.get(), jpeg.data(), jpeg.bytes.size(), &jpeg.size.width,
                            &jpeg.size.height, &subsampling, &space) == 0)
      jpegs.push_back(std::move(jpeg));
  }
  return jpegs;
}

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Returns an image of `size` in a buffer that grows if needed and never shrinks.
cv::Mat in(Bytes& buffer, cv::Size size) {
  const auto bytes = std::size_t{3} * size.width * size.height;
  if (buffer.size() < bytes) buffer.resize(bytes);
  return {size, CV_8UC3, buffer.data()};
}

cv::Mat decode(const Jpeg& jpeg, void* decoder, Bytes& buffer) {
  auto image = in(buffer, jpeg.size);
  tjDecompress2(decoder, jpeg.data(), jpeg.bytes.size(), image.data, image.cols, 0, image.rows,
                TJPF_RGB, TJFLAG_ACCURATEDCT);
  return image;
}

void measure_decode(const std::vector<Jpeg>& jpegs, int threads, double seconds,
                    FlowLowerBounds& bounds) {
  const auto began = Clock::now();
  std::atomic<std::size_t> next = 0;
  std::atomic<double> cpu_s = 0;
  const auto work = [&] {
    const UniqueTurboJpeg decoder(tjInitDecompress());
    Bytes buffer;
    const double before = thread_cpu_s();
    do decode(jpegs[next++ % jpegs.size()], decoder.get(), buffer);
    while (seconds_since(began) < seconds);
    cpu_s += thread_cpu_s() - before;
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  }
  bounds.decode_images_per_s = static_cast<double>(next) / seconds_since(began);
  bounds.decode_images_per_cpu_s = static_cast<double>(next) / cpu_s;
}

void measure_stages(const std::vector<Jpeg>& jpegs, double seconds, FlowLowerBounds& bounds) {
  const UniqueTurboJpeg decoder(tjInitDecompress());
  Bytes decoded, resized, copied;
  // The first round grows the buffers and is not counted.
  const auto round = [&] {
    double last = 0;
    const auto lap = [&](double& sum_ms) {
      const double now = thread_cpu_s();
      sum_ms += 1e3 * (now - std::exchange(last, now));
    };
    for (const auto& jpeg : jpegs) {
      last = thread_cpu_s();
      const auto image = decode(jpeg, decoder.get(), decoded);
      lap(bounds.decode_ms);
      auto target = in(resized, jpeg.delivered);
      resize_bilinear(image, target);
      lap(bounds.resize_ms);
      std::memcpy(in(copied, jpeg.delivered).data, target.data, target.total() * 3);
      lap(bounds.copy_ms);
    }
  };
  round();
  bounds.decode_ms = bounds.resize_ms = bounds.copy_ms = 0;
  std::size_t images = 0;
  const auto began = Clock::now();
  do {
    round();
    images += jpegs.size();
  } while (seconds_since(began) < seconds);
  for (double* ms : {&bounds.decode_ms, &bounds.resize_ms, &bounds.copy_ms})
    *ms /= static_cast<double>(images);
}

}  // namespace

FlowLowerBounds measure_lower_bounds(std::span<const DeliveredImage> images, int threads,
                                     double seconds) {
  FlowLowerBounds bounds;
  const auto jpegs = read_jpegs(images);
  if (jpegs.empty()) return bounds;
  measure_decode(jpegs, threads, seconds, bounds);
  measure_stages(jpegs, seconds, bounds);
  return bounds;
}

}  // namespace millrace::cli
