// Whether a batch is copied to the device while the device computes, from page-locked memory, as
// training does it (millrace/trainer/run/device.cpp).
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/clock.h"
#include "millrace/cli/check_gpu/device_time.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/trainer/run/device.h"

namespace millrace::cli {
namespace {

constexpr double kLeastOverlap = 0.5;  // of the copy

Batch batch_in(const BufferPool& memory, bool small) {
  Batch batch{.height = small ? 32 : 800, .width = small ? 32 : 1344};
  batch.images.resize(small ? 2 : 12);
  batch.pixels = memory.acquire(batch.bytes());
  std::fill_n(batch.pixels.get(), batch.bytes(), std::uint8_t{7});
  return batch;
}

/// In seconds, from the moment when the work began.
struct Timeline {
  double computed = 0;                    // the work has ended
  double copy_begins = 0, copy_ends = 0;  // on the other stream
  double host = 0;                        // that the call that begins the copy took
};

/// `work` on the current stream and, queued after it, a copy on `copies`.
Timeline both(const Batch& batch, at::Device device, const c10::Stream& copies,
              const std::function<void()>& work) {
  wait_for(device);
  TimedEvent begin(stream_of(device));
  work();
  TimedEvent computed(stream_of(device));
  TimedEvent copy_begins(copies);
  const auto called = Clock::now();
  const auto pixels = copied_ahead(batch, copies);
  Timeline line{.host = seconds_since(called)};
  TimedEvent copy_ends(copies);
  line.computed = begin.until(computed);
  line.copy_begins = begin.until(copy_begins);
  line.copy_ends = begin.until(copy_ends);
  return line;
}

}  // namespace

void check_upload(PartRun& run) {
  const auto device = run.device();
  const auto copies = c10::impl::getDeviceGuardImpl(device.type())->getNewStream(device);
  const auto in_heap = batch_in(BufferPool(), run.options.small);
  make_batches_for(device);
  const auto in_locked = batch_in(batch_memory(), run.options.small);

  const auto a = at::zeros({run.options.small ? 32 : 4096, run.options.small ? 32 : 4096},
                           at::TensorOptions(device).dtype(at::kFloat));
  const auto one = device_seconds(device, [&] { at::matmul(a, a); });
  const auto alone = [&](const Batch& batch) {
    const auto line = both(batch, device, copies, [] {});
    return line.copy_ends - line.copy_begins;
  };
  alone(in_locked);  // the first takes the memory from the driver
  const double copy_s = alone(in_locked);
  const int times =
      std::clamp(static_cast<int>(std::ceil(3 * copy_s / std::max(one, 1e-6))), 1, 1000);
  const auto work = [&] {
    for (int i = 0; i < times; ++i) at::matmul(a, a);
  };
  const double work_s = device_seconds(device, work);
  for (const auto& [name, batch] : {std::pair{"page-locked", &in_locked}, {"pageable", &in_heap}}) {
    const double own_s = alone(*batch);
    const auto line = both(*batch, device, copies, work);
    const double whole_s = std::max(line.computed, line.copy_ends);
    const double overlap = (work_s + own_s - whole_s) / std::min(work_s, own_s);
    run.report.row("A batch copied while the device computes",
                   {{"memory", name},
                    {"MB", static_cast<double>(batch->bytes()) / 1e6},
                    {"copy alone, ms", 1e3 * own_s},
                    {"GB/s", static_cast<double>(batch->bytes()) / own_s / 1e9},
                    {"work alone, ms", 1e3 * work_s},
                    {"work ends at, ms", 1e3 * line.computed},
                    {"copy begins at, ms", 1e3 * line.copy_begins},
                    {"ends at, ms", 1e3 * line.copy_ends},
                    {"the host took, ms", 1e3 * line.host},
                    {"overlap", overlap}});
    if (batch == &in_heap || run.options.small) continue;
    run.report.check(
        "the copy runs beside the work", overlap >= kLeastOverlap,
        fmt::format("{:.0f} % of it, at least {:.0f} %", 100 * overlap, 100 * kLeastOverlap));
    run.report.check("the host does not wait for the copy", line.host < own_s / 2,
                     fmt::format("{:.2f} ms of a copy of {:.2f} ms", 1e3 * line.host, 1e3 * own_s));
  }
  wait_for(device);
}

}  // namespace millrace::cli
