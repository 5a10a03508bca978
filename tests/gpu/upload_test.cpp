// Batches are copied from pinned memory to the device while it computes, and are complete, as in a
// training run (millrace/trainer/run/device.cpp).
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "millrace/base/clock.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/trainer/run/device.h"
#include "tests/gpu/device_time.h"
#include "tests/gpu/made_batches.h"
#include "tests/gpu/on_device.h"

namespace millrace::testing {
namespace {

class Upload : public OnDevice {
 protected:
  ~Upload() override { set_batch_memory(BufferPool()); }

  at::Tensor square(std::int64_t side) const {
    return at::randn({side, side}, at::TensorOptions(at::kFloat).device(device_));
  }
};

TEST_F(Upload, KeepsBatchesIfMemoryIsReused) {
  make_batches_for(device_);  // pinned, so that copies are asynchronous
  const int side = small_ ? 256 : 1024, count = small_ ? 10 : 100;
  const auto bytes = std::size_t{4} * 3 * static_cast<std::size_t>(side * side);
  std::uint8_t made = 0;
  // Each batch reuses memory that an earlier batch has released.
  const auto flow = upload_ahead(std::make_unique<Made>([&] {
                                   Batch batch{.height = side, .width = side};
                                   batch.images.resize(4);
                                   batch.objects.resize(4);
                                   batch.pixels = batch_memory().acquire(bytes);
                                   std::memset(batch.pixels.get(), ++made, bytes);
                                   return batch;
                                 }),
                                 device_);
  const auto work = square(small_ ? 32 : 4096);
  std::vector<at::Tensor> differ;
  for (int i = 1; i <= count; ++i) {
    const auto batch = flow->next()->value;
    auto busy = work;
    for (int k = 0; k < 4; ++k) busy = busy.matmul(work);  // makes steps slower than uploads
    const auto pixels = pixels_on(batch, device_);
    EXPECT_EQ(pixels.device(), device_);
    differ.push_back(pixels.ne(i).sum());
  }
  for (std::size_t i = 0; i < differ.size(); ++i)
    EXPECT_EQ(differ[i].item<std::int64_t>(), 0) << "batch " << i + 1;
  EXPECT_LT(batch_memory().bytes(), 20 * bytes) << "memory is reused";
}

/// Times in seconds since the start of the work.
struct Timeline {
  double computed = 0;                    // end of the work
  double copy_begins = 0, copy_ends = 0;  // on the other stream
  double host = 0;                        // duration of the call that starts the copy
};

/// Runs `work` on the current stream and, queued after it, a copy on `copies`.
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

TEST_F(Upload, OverlapsWithComputation) {
  const auto copies = c10::impl::getDeviceGuardImpl(device_.type())->getNewStream(device_);
  make_batches_for(device_);
  Batch batch{.height = small_ ? 32 : 800, .width = small_ ? 32 : 1344};
  batch.images.resize(small_ ? 2 : 12);
  batch.pixels = batch_memory().acquire(batch.bytes());
  std::fill_n(batch.pixels.get(), batch.bytes(), std::uint8_t{7});

  const auto copy_alone = [&] {
    const auto line = both(batch, device_, copies, [] {});
    return line.copy_ends - line.copy_begins;
  };
  copy_alone();  // the first copy allocates memory from the driver
  const double copy_s = copy_alone();
  const auto a = square(small_ ? 32 : 4096);
  const auto one_s = device_seconds(device_, [&] { at::matmul(a, a); });
  const int times =
      std::clamp(static_cast<int>(std::ceil(3 * copy_s / std::max(one_s, 1e-6))), 1, 1000);
  const auto work = [&] {
    for (int i = 0; i < times; ++i) at::matmul(a, a);
  };
  const double work_s = device_seconds(device_, work);
  const auto line = both(batch, device_, copies, work);
  const double whole_s = std::max(line.computed, line.copy_ends);
  const double overlap = (work_s + copy_s - whole_s) / std::min(work_s, copy_s);
  EXPECT_GE(line.copy_ends, line.copy_begins);
  if (!small_) {  // with --small, both are too short
    EXPECT_GE(overlap, 0.5) << "of a copy of " << 1e3 * copy_s << " ms; work of " << 1e3 * work_s
                            << " ms ends at " << 1e3 * line.computed << " ms, the copy is from "
                            << 1e3 * line.copy_begins << " to " << 1e3 * line.copy_ends << " ms";
    EXPECT_LT(line.host, copy_s / 2) << "the host waits for the copy";
  }
}

}  // namespace
}  // namespace millrace::testing
