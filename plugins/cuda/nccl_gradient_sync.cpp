// Sums gradients over ranks on GPUs with NCCL, on a separate stream that overlaps the backward
// pass. This code has never run on a GPU.
#include <c10/core/Event.h>
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
#include "millrace/trainer/cluster/gpu_address.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/mpi_world.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/cluster/tree_exchange.h"

namespace millrace {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(1);  // polling interval for sums
/// Time to poll the host's part of a call without sleeping. It mostly takes microseconds, less than
/// a sleep of a millisecond for each sum of a step.
constexpr auto kPollTime = std::chrono::microseconds(200);

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
      throw Error("NCCL supports only float, double, half and bfloat16 tensors");
  }
}

/// Throws Error if two ranks use one GPU, which NCCL does not support. Launchers may show each rank
/// only its own GPU, or all ranks the same GPUs.
void check_own_gpus(const Cluster& cluster) {
  const auto address = gpu_address(cluster.local_rank());
  const auto all = cluster.gather("GPUs", host_name() + " " + address);
  for (std::size_t rank = 1; !address.empty() && rank < all.size(); ++rank)
    for (std::size_t other = 0; other < rank; ++other)
      if (all[rank] == all[other])
        throw Error(
            fmt::format("{} and {} use the same GPU ({}): start one rank per GPU (mpirun --map-by "
                        "ppr:GPUS:node) and set CUDA_VISIBLE_DEVICES to all GPUs of the host or to "
                        "one GPU per rank",
                        cluster.name(static_cast<std::int64_t>(other)),
                        cluster.name(static_cast<std::int64_t>(rank)), all[rank]));
}

/// NCCL's own sum adds half-precision values in half precision. The host does not wait for the
/// device in begin_sum() and wait(); a thread checks that every sum ends. Steps that are already
/// queued cannot catch an error on the device, so it stops all ranks, like a missing rank.
class NcclGradientSync final : public GradientSync {
 public:
  NcclGradientSync(const Cluster& cluster, SumOrder order)
      : cluster_(cluster),
        order_(order),
        world_(*cluster.world()),
        communicator_(world_.communicator()),
        gpu_(c10::cuda::current_device()),  // the GPU of this rank, selected in run/device.h
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, gpu_)) {
    const c10::cuda::CUDAGuard guard(gpu_);
    check_own_gpus(cluster_);
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
    if (order_ == SumOrder::tree) {
      const c10::cuda::CUDAStreamGuard on(stream_);  // also for the additions
      sum_as_tree(values, cluster_.rank(), cluster_.size(),
                  [&](const auto& sent, const auto& received) { exchange(sent, received, what); });
    } else {
      auto* data = values.mutable_data_ptr();
      wait_for_host(ncclAllReduce(data, data, static_cast<std::size_t>(values.numel()),
                                  type_of(values), ncclSum, nccl_, stream_.stream()),
                    what);
    }
    // The stream that waits for the sums frees memory in its order, so tensors are kept here until
    // then. (recordStream would do this too, but throws in a destructor after a device error.)
    held_.push_back(values);
    what_ = what;
  }

  void wait() override {
    if (!what_) return;
    const c10::cuda::CUDAGuard guard(gpu_);
    auto over = std::make_shared<c10::Event>(at::kCUDA);
    over->record(stream_);
    over->block(c10::cuda::getCurrentCUDAStream(gpu_));
    held_.clear();
    const std::lock_guard lock(mutex_);
    begun_.push_back({std::move(over), std::exchange(what_, nullptr)});
    changed_.notify_all();
  }

 private:
  struct Begun {
    std::shared_ptr<c10::Event> over;
    const char* what = "";
  };

  /// Creates NCCL's communicator; rank 0 creates its unique id for all ranks.
  void connect() {
    ncclUniqueId id{};
    if (cluster_.is_chief())
      if (const auto status = ncclGetUniqueId(&id); status != ncclSuccess)
        throw Error(fmt::format("cannot initialize NCCL: {}", ncclGetErrorString(status)));
    const auto name = cluster_.broadcast("NCCL unique id", {id.internal, sizeof(id.internal)});
    std::memcpy(id.internal, name.data(), sizeof(id.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    wait_for_host(ncclCommInitRankConfig(&nccl_, static_cast<int>(cluster_.size()), id,
                                         static_cast<int>(cluster_.rank()), &config),
                  "initialization");
  }

  /// Sends and receives in one NCCL group. Calls within a group are only queued; the end of the
  /// group starts them together.
  void exchange(const std::vector<RankMessage>& sent, const std::vector<RankMessage>& received,
                const char* what) {
    const auto note = [&](ncclResult_t status) {
      if (status != ncclSuccess && status != ncclInProgress) fail(what, reason(status));
    };
    note(ncclGroupStart());
    for (const auto& [rank, values] : sent)
      note(ncclSend(values.const_data_ptr(), static_cast<std::size_t>(values.numel()),
                    type_of(values), static_cast<int>(rank), nccl_, stream_.stream()));
    for (const auto& [rank, values] : received)
      note(ncclRecv(values.mutable_data_ptr(), static_cast<std::size_t>(values.numel()),
                    type_of(values), static_cast<int>(rank), nccl_, stream_.stream()));
    wait_for_host(ncclGroupEnd(), what);
  }

  /// Waits until the host's part of a call is finished.
  void wait_for_host(ncclResult_t status, const char* what) {
    const auto began = Clock::now();
    while (status == ncclInProgress) {
      const auto waited = Clock::now() - began;
      if (waited > timeout()) fail(what, "timeout");
      if (waited > kPollTime)
        std::this_thread::sleep_for(kPeriod);
      else
        std::this_thread::yield();
      if (const auto asked = ncclCommGetAsyncError(nccl_, &status); asked != ncclSuccess)
        status = asked;
    }
    if (status != ncclSuccess) fail(what, reason(status));
  }

  std::string reason(ncclResult_t status) const {
    return fmt::format("{} ({})", ncclGetErrorString(status), ncclGetLastError(nccl_));
  }

  std::chrono::duration<double> timeout() const {
    return std::chrono::duration<double>(world_.timeout());
  }

  [[noreturn]] void fail(const char* what, const std::string& why) {
    log_error("{}: NCCL: '{}' failed: {}", cluster_.name(), what, why);
    if (nccl_) ncclCommAbort(nccl_);
    world_.abort(1);
  }

  /// Checks each sum: waits first for all ranks, since MPI can name a missing one, then for the
  /// device.
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
        const MpiWorld::Exchange exchange(world_, what);
        MPI_Request request = MPI_REQUEST_NULL;
        check_mpi(MPI_Ibarrier(communicator_, &request), what);
        world_.wait({&request, 1}, what);
        const auto met = Clock::now();
        while (!over->query()) {
          auto status = ncclSuccess;
          ncclCommGetAsyncError(nccl_, &status);
          // ncclInProgress means that another sum is being started.
          if (status != ncclSuccess && status != ncclInProgress) fail(what, reason(status));
          if (Clock::now() - met > timeout()) fail(what, "timeout on the GPU");
          std::this_thread::sleep_for(kPeriod);
        }
      } catch (const std::exception& problem) {
        fail(what, problem.what());
      }
      lock.lock();
    }
  }

  const Cluster& cluster_;
  const SumOrder order_;
  MpiWorld& world_;
  const MPI_Comm communicator_;  // used by the watch() thread
  const c10::DeviceIndex gpu_;
  const c10::cuda::CUDAStream stream_;
  ncclComm_t nccl_ = nullptr;
  c10::Event before_{at::kCUDA};
  std::vector<at::Tensor> held_;  // tensors of sums that wait() has not covered yet
  const char* what_ = nullptr;    // name of the newest such sum
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Begun> begun_;
  bool ended_ = false;
  std::thread thread_;
};

MILLRACE_REGISTER(gradient_syncs().add<NoOptions>(
    "cuda", "sums with NCCL on a separate stream, overlapping the backward pass",
    [](const Config&, const Cluster& cluster, SumOrder order) -> std::unique_ptr<GradientSync> {
      return std::make_unique<NcclGradientSync>(cluster, order);
    }));

}  // namespace
}  // namespace millrace
