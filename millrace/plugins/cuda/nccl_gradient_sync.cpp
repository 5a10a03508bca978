// Sums over ranks on GPUs, by NCCL, on a stream of its own, while the backward pass goes on. Never
// run on a GPU.
#include <c10/core/Event.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <fmt/format.h>
#include <nccl.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/registry.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/mpi_world.h"

namespace millrace {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(1);  // between looks at whether a sum has ended

ncclDataType_t type_of(const at::Tensor& values) {
  switch (values.scalar_type()) {
    case at::kFloat:
      return ncclFloat;
    case at::kDouble:
      return ncclDouble;
    case at::kHalf:
      return ncclHalf;
    case at::kBFloat16:
      return ncclBfloat16;
    default:
      throw Error("NCCL sums floats, doubles and their halves only");
  }
}

/// The GPU of a rank: as many ranks on a host as it has GPUs, each with its own.
c10::DeviceIndex gpu_of(const Cluster& cluster) {
  const auto count = c10::cuda::device_count();
  if (cluster.local_rank() >= count)
    throw Error(fmt::format(
        "{} ranks were started on its host, which has {} GPUs: start one per GPU (mpirun "
        "--map-by ppr:{}:node)",
        cluster.local_size(), count, count));
  return static_cast<c10::DeviceIndex>(cluster.local_rank());
}

/// NCCL adds halves as halves. The host never waits for the device here; a thread watches that
/// every sum ends. An error on the device cannot be caught by the steps queued after it: it ends
/// all ranks, as a missing rank does.
class NcclGradientSync final : public GradientSync {
 public:
  explicit NcclGradientSync(const Cluster& cluster)
      : cluster_(cluster),
        world_(*cluster.world()),
        communicator_(world_.communicator()),
        gpu_(gpu_of(cluster)),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, gpu_)) {
    const c10::cuda::CUDAGuard guard(gpu_);
    connect();
    thread_ = std::thread([this] { watch(); });
  }

  ~NcclGradientSync() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
    ncclCommDestroy(nccl_);
  }

  void begin_sum(const at::Tensor& values, const char* what) override {
    const c10::cuda::CUDAGuard guard(gpu_);
    before_.record(c10::cuda::getCurrentCUDAStream(gpu_));
    before_.block(stream_);
    auto* data = values.mutable_data_ptr();
    settle(ncclAllReduce(data, data, static_cast<std::size_t>(values.numel()), type_of(values),
                         ncclSum, nccl_, stream_.stream()),
           what);
    // The allocator does not reuse the memory before the stream is done with it.
    c10::cuda::CUDACachingAllocator::recordStream(values.storage().data_ptr(), stream_);
    what_ = what;
  }

  void wait() override {
    if (!what_) return;
    const c10::cuda::CUDAGuard guard(gpu_);
    auto over = std::make_shared<c10::Event>(at::kCUDA);
    over->record(stream_);
    over->block(c10::cuda::getCurrentCUDAStream(gpu_));
    const std::lock_guard lock(mutex_);
    begun_.push_back({std::move(over), std::exchange(what_, nullptr)});
    changed_.notify_all();
  }

 private:
  struct Begun {
    std::shared_ptr<c10::Event> over;
    const char* what = "";
  };

  /// Rank 0 makes the name under which all ranks find each other.
  void connect() {
    ncclUniqueId id{};
    if (cluster_.is_chief())
      if (const auto status = ncclGetUniqueId(&id); status != ncclSuccess)
        throw Error(fmt::format("NCCL cannot begin: {}", ncclGetErrorString(status)));
    const auto name = cluster_.broadcast("NCCL's name", {id.internal, sizeof(id.internal)});
    std::memcpy(id.internal, name.data(), sizeof(id.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    settle(ncclCommInitRankConfig(&nccl_, static_cast<int>(cluster_.size()), id,
                                  static_cast<int>(cluster_.rank()), &config),
           "connection of GPUs");
  }

  /// Waits until the host's part of a call is done.
  void settle(ncclResult_t status, const char* what) {
    const auto began = Clock::now();
    while (status == ncclInProgress) {
      if (Clock::now() - began > patience()) fail(what, "it does not end");
      std::this_thread::sleep_for(kPeriod);
      if (const auto asked = ncclCommGetAsyncError(nccl_, &status); asked != ncclSuccess)
        status = asked;
    }
    if (status != ncclSuccess) fail(what, reason(status));
  }

  std::string reason(ncclResult_t status) const {
    return fmt::format("{} ({})", ncclGetErrorString(status), ncclGetLastError(nccl_));
  }

  std::chrono::duration<double> patience() const {
    return std::chrono::duration<double>(world_.patience());
  }

  [[noreturn]] void fail(const char* what, const std::string& why) {
    spdlog::error("{}: NCCL cannot sum '{}': {}", cluster_.name(), what, why);
    if (nccl_) ncclCommAbort(nccl_);
    world_.abort(1);
  }

  /// Waits first for all ranks, since MPI can name one that is missing, then for the device.
  void watch() {
    c10::cuda::set_device(gpu_);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !begun_.empty(); });
      if (begun_.empty()) return;
      const auto [over, what] = begun_.front();
      begun_.pop_front();
      lock.unlock();
      try {
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(MPI_Ibarrier(communicator_, &request), what);
        world_.wait({&request, 1}, what);
        const auto met = Clock::now();
        while (!over->query()) {
          auto status = ncclSuccess;
          ncclCommGetAsyncError(nccl_, &status);
          // In progress: another sum is being begun.
          if (status != ncclSuccess && status != ncclInProgress) fail(what, reason(status));
          if (Clock::now() - met > patience()) fail(what, "the GPUs do not end it");
          std::this_thread::sleep_for(kPeriod);
        }
      } catch (const std::exception& problem) {
        fail(what, problem.what());
      }
      lock.lock();
    }
  }

  const Cluster& cluster_;
  MpiWorld& world_;
  const MPI_Comm communicator_;  // used by the watching thread
  const c10::DeviceIndex gpu_;
  const c10::cuda::CUDAStream stream_;
  ncclComm_t nccl_ = nullptr;
  c10::Event before_{at::kCUDA};
  const char* what_ = nullptr;  // the newest sum that is not waited for yet
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Begun> begun_;
  bool ended_ = false;
  std::thread thread_;
};

MILLRACE_REGISTER(gradient_syncs().add<NoOptions>(
    "cuda", "sums over NCCL, on a stream beside the backward pass",
    [](const Config&, const Cluster& cluster) -> std::unique_ptr<GradientSync> {
      return std::make_unique<NcclGradientSync>(cluster);
    }));

}  // namespace
}  // namespace millrace
