// Sums over ranks on CPUs: sum_as_tree over MPI messages.
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/core/GradMode.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/mpi_world.h"
#include "millrace/trainer/cluster/tree_exchange.h"

namespace millrace {
namespace {

/// MPI only transfers the values, so any type of the same size will do.
MPI_Datatype mpi_type(const at::Tensor& values) {
  return values.element_size() == 8   ? MPI_UINT64_T
         : values.element_size() == 4 ? MPI_UINT32_T
                                      : MPI_UINT16_T;
}

/// Exchanges messages on a separate thread. `wait` rethrows the exception of a sum.
class MpiGradientSync final : public GradientSync {
 public:
  explicit MpiGradientSync(MpiWorld& world)
      : world_(world), communicator_(world.communicator()), thread_([this] { run(); }) {}

  ~MpiGradientSync() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void begin_sum(const at::Tensor& values, const char* what) override {
    const std::lock_guard lock(mutex_);
    todo_.push_back({values, what});
    changed_.notify_all();
  }

  void wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return todo_.empty(); });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  struct Work {
    at::Tensor values;
    const char* what = "";
  };

  void run() {
    const c10::NoGradGuard no_graph;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !todo_.empty(); });
      if (todo_.empty()) return;
      auto& work = todo_.front();  // references to elements of a deque stay valid
      lock.unlock();
      try {
        sum(work);
      } catch (...) {
        const std::lock_guard again(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      lock.lock();
      todo_.pop_front();
      changed_.notify_all();
    }
  }

  void sum(const Work& work) {
    if (!work.values.is_floating_point())
      throw Error("cannot sum this type over MPI; supported are float, double and half precision");
    const MpiWorld::Exchange event(world_, work.what);
    sum_as_tree(
        work.values, world_.rank(), world_.size(),
        [&](const auto& sent, const auto& received) { exchange(sent, received, work.what); });
  }

  void exchange(const std::vector<RankMessage>& sent, const std::vector<RankMessage>& received,
                const char* what) {
    std::vector<MPI_Request> requests(sent.size() + received.size(), MPI_REQUEST_NULL);
    auto* request = requests.data();
    std::int64_t sent_bytes = 0, received_bytes = 0;
    for (const auto& [rank, values] : sent) {
      check_mpi(MPI_Isend(values.const_data_ptr(), static_cast<int>(values.numel()),
                          mpi_type(values), static_cast<int>(rank), 0, communicator_, request++),
                what);
      sent_bytes += static_cast<std::int64_t>(values.nbytes());
    }
    for (const auto& [rank, values] : received) {
      check_mpi(MPI_Irecv(values.mutable_data_ptr(), static_cast<int>(values.numel()),
                          mpi_type(values), static_cast<int>(rank), 0, communicator_, request++),
                what);
      received_bytes += static_cast<std::int64_t>(values.nbytes());
    }
    world_.wait(requests, what);
    world_.count(sent_bytes, received_bytes);
  }

  MpiWorld& world_;
  const MPI_Comm communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> todo_;
  std::exception_ptr failure_;
  bool ended_ = false;
  std::thread thread_;  // last member, since it uses the others
};

/// For a cluster of one rank.
class NoGradientSync final : public GradientSync {
 public:
  void begin_sum(const at::Tensor&, const char*) override {}
  void wait() override {}
};

MILLRACE_REGISTER(gradient_syncs().add<NoOptions>(
    "cpu", "sums over MPI, in the order of a tree of the ranks",
    [](const Config&, const Cluster& cluster, SumOrder) -> std::unique_ptr<GradientSync> {
      return std::make_unique<MpiGradientSync>(*cluster.world());
    }));

}  // namespace

Registry<GradientSyncFactory>& gradient_syncs() {
  static Registry<GradientSyncFactory> all("gradient sync");
  return all;
}

std::unique_ptr<GradientSync> make_gradient_sync(c10::DeviceType device, const Cluster& cluster,
                                                 SumOrder order) {
  if (cluster.size() == 1) return std::make_unique<NoGradientSync>();
  const auto name = c10::DeviceTypeName(device, /*lower_case=*/true);
  return gradient_syncs().at(name).create(Config(), cluster, order);
}

}  // namespace millrace
