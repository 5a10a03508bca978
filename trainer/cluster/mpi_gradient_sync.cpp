// Sums over ranks on CPUs, by MPI: a reduce-scatter that adds as a tree, then an allgather.
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/mpi_world.h"
#include "millrace/trainer/cluster/tree_exchange.h"

namespace millrace {
namespace {

template <class T>
MPI_Datatype mpi_type() {
  if (std::is_same_v<T, double>) return MPI_DOUBLE;
  if (std::is_same_v<T, float>) return MPI_FLOAT;
  return MPI_UINT16_T;  // half precision: MPI only carries it
}

/// A thread of its own speaks to the other ranks. `wait` throws what a sum has thrown.
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
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !todo_.empty(); });
      if (todo_.empty()) return;
      auto& work = todo_.front();  // a deque's elements stay where they are
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
    switch (work.values.scalar_type()) {
      case at::kFloat:
        return sum<float, float>(work);
      case at::kDouble:
        return sum<double, double>(work);
      case at::kHalf:
        return sum<at::Half, float>(work);
      case at::kBFloat16:
        return sum<at::BFloat16, float>(work);
      default:
        throw Error("over MPI, only floats, doubles and half precision are summed");
    }
  }

  /// Values of type T, added as `Wide` and rounded once.
  template <class T, class Wide>
  void sum(const Work& work) {
    const auto type = mpi_type<T>();
    auto* values = work.values.mutable_data_ptr<T>();
    const auto ranks = static_cast<std::size_t>(world_.size());
    const auto count = static_cast<std::size_t>(work.values.numel());
    const auto start_of = [&](std::size_t rank) {
      return static_cast<std::size_t>(
          begin_of_part(work.values.numel(), world_.size(), static_cast<std::int64_t>(rank)));
    };
    const auto own = static_cast<std::size_t>(world_.rank());
    const auto mine = start_of(own + 1) - start_of(own);
    std::vector<int> counts, starts, own_counts, own_starts;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      starts.push_back(static_cast<int>(start_of(rank)));
      counts.push_back(static_cast<int>(start_of(rank + 1) - start_of(rank)));
      own_starts.push_back(static_cast<int>(mine * rank));
      own_counts.push_back(static_cast<int>(mine));
    }
    parts_.resize(std::max(parts_.size(), mine * ranks * sizeof(T)));
    auto* parts = reinterpret_cast<T*>(parts_.data());
    const MpiWorld::Exchange exchange(world_, work.what);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ialltoallv(values, counts.data(), starts.data(), type, parts, own_counts.data(),
                             own_starts.data(), type, communicator_, &request),
              work.what);
    world_.wait({&request, 1}, work.what);
    auto* result = values + start_of(own);
    using Block = std::array<Wide, 1024>;
    for (std::size_t first = 0; first < mine; first += Block().size()) {
      const auto size = std::min(Block().size(), mine - first);
      const auto of_rank = [&](std::size_t rank) {
        Block block;
        std::copy_n(parts + mine * rank + first, size, block.begin());
        return block;
      };
      const auto add = [size](Block&& sum, const Block& more) -> Block {
        for (std::size_t i = 0; i < size; ++i) sum[i] += more[i];
        return sum;
      };
      const auto total = tree_sum(ranks, of_rank, add);
      for (std::size_t i = 0; i < size; ++i) result[first + i] = static_cast<T>(total[i]);
    }
    check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, values, counts.data(), starts.data(), type,
                              communicator_, &request),
              work.what);
    world_.wait({&request, 1}, work.what);
    // Both exchanges: of the others' parts here and of this part there, then the other way round.
    const auto moved = static_cast<std::int64_t>((count - mine + mine * (ranks - 1)) * sizeof(T));
    world_.count(moved, moved);
  }

  MpiWorld& world_;
  const MPI_Comm communicator_;
  std::vector<char> parts_;  // of all ranks, to be added here
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> todo_;
  std::exception_ptr failure_;
  bool ended_ = false;
  std::thread thread_;  // the last member: it uses the others
};

/// Of a rank that is alone.
class NoGradientSync final : public GradientSync {
 public:
  void begin_sum(const at::Tensor&, const char*) override {}
  void wait() override {}
};

MILLRACE_REGISTER(gradient_syncs().add<NoOptions>(
    "cpu", "sums over MPI, added as a tree of the ranks",
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
