// [callbacks.resources]: memory of the process and the GPUs, and utilization of the GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/callbacks/common/gpu_meter.h"
#include "millrace/models/detector/device_memory.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/ticker.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

// Sampling period of the GPUs, on a separate thread.
constexpr auto kSampling = std::chrono::seconds(1);
constexpr double kMebibyte = 1 << 20;

struct ResourcesOptions {
  std::string every = "20 steps";
  void describe(Options& o) {
    o.add("every", every, "interval; GPU use is a mean over it, if it is at least a second")
        .affects(Affects::run);
  }
};

class MeasureResources final : public Callback, public PublishesMetrics {
 public:
  using Options = ResourcesOptions;

  void before_train(const TrainState&) override {
    sample();
    if (samples_.empty())
      log_info("resources: no NVIDIA GPU found; measuring only the host's memory");
    else
      ticker_ = std::make_unique<Ticker>(kSampling, [this] { sample(); });
  }

  void trigger(const TrainState& state) override {
    const auto mebibytes = [](std::int64_t bytes) {
      return static_cast<double>(bytes) / kMebibyte;
    };
    const auto resident = rss_bytes();  // may exceed the reported peak by some pages
    Scalars metrics = {{"time/memory_mib", mebibytes(resident)},
                       {"time/memory_peak_mib", mebibytes(std::max(resident, peak_rss_bytes()))}};
    if (const auto peak = peak_memory(state.model.device())) {
      metrics.emplace_back("time/device_memory_peak_mib", mebibytes(peak->tensors_bytes));
      metrics.emplace_back("time/device_reserved_peak_mib", mebibytes(peak->reserved_bytes));
    }
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const auto gpu = std::exchange(samples_[i], {});
      if (gpu.count == 0) continue;
      metrics.emplace_back(fmt::format("time/gpu{}_busy", i), gpu.busy / gpu.count);
      metrics.emplace_back(fmt::format("time/gpu{}_memory_mib", i), mebibytes(gpu.memory_bytes));
    }
    state.publish(metrics);
  }

  void after_train(const TrainState&) override { ticker_.reset(); }

  std::vector<std::string> publishes() const override {
    return {"time/memory_mib", "time/memory_peak_mib", "time/device*", "time/gpu*"};
  }

 private:
  struct Gpu {
    double busy = 0;  // busy shares, summed over `count` samples
    double count = 0;
    std::int64_t memory_bytes = 0;  // memory of the last sample
  };

  void sample() {
    const auto now = gpu_use();
    const std::scoped_lock lock(mutex_);
    if (samples_.empty()) samples_.resize(now.size());
    for (std::size_t i = 0; i < std::min(now.size(), samples_.size()); ++i) {
      samples_[i].busy += now[i].busy;
      samples_[i].count += 1;
      samples_[i].memory_bytes = now[i].memory_bytes;
    }
  }

  std::mutex mutex_;
  std::vector<Gpu> samples_;  // samples since the last trigger, by GPU
  std::unique_ptr<Ticker> ticker_;
};

MILLRACE_REGISTER(register_callback<MeasureResources>(
    "resources", "measures memory of the process, and memory and use of the GPUs"));

}  // namespace
}  // namespace millrace
