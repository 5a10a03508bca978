// Sums over ranks on CPUs, by MPI: every rank adds up its part of the values in the order of ranks and gives it to all.
#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "trainer/gradient_sync.h"
#include "trainer/mpi_world.h"

namespace millrace {
namespace {

MPI_Datatype type_of(const at::Tensor& values) {
  if (values.scalar_type() == at::kFloat) return MPI_FLOAT;
  if (values.scalar_type() == at::kDouble) return MPI_DOUBLE;
  throw Error("over MPI, floats and doubles are summed only");
}

/// A thread of its own speaks to the other ranks. Where a sum failed, `wait` throws what it threw.
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
        if (work.values.scalar_type() == at::kDouble)
          sum<double>(work);
        else
          sum<float>(work);
      } catch (...) {
        const std::lock_guard again(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      lock.lock();
      todo_.pop_front();
      changed_.notify_all();
    }
  }

  template <class T>
  void sum(const Work& work) {
    const auto type = type_of(work.values);
    auto* values = work.values.mutable_data_ptr<T>();
    const auto ranks = static_cast<std::size_t>(world_.size());
    const auto count = static_cast<std::size_t>(work.values.numel());
    const auto start_of = [&](std::size_t rank) { return count * rank / ranks; };
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
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ialltoallv(values, counts.data(), starts.data(), type, parts, own_counts.data(),
                             own_starts.data(), type, communicator_, &request),
              work.what);
    world_.wait({&request, 1}, work.what);
    auto* result = values + start_of(own);
    std::copy_n(parts, mine, result);
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      const auto* part = parts + mine * rank;
      for (std::size_t i = 0; i < mine; ++i) result[i] += part[i];
    }
    check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, values, counts.data(), starts.data(), type,
                              communicator_, &request),
              work.what);
    world_.wait({&request, 1}, work.what);
  }

  MpiWorld& world_;
  const MPI_Comm communicator_;
  std::vector<char> parts_;  // of all ranks, to be added up here
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> todo_;
  std::exception_ptr failure_;
  bool ended_ = false;
  std::thread thread_;  // the last member: it uses the others
};

const bool registered = gradient_syncs().add<NoOptions>(
    "cpu", "sums over MPI, added in the order of ranks",
    [](const Config&, const Cluster& cluster) -> std::unique_ptr<GradientSync> {
      return std::make_unique<MpiGradientSync>(*cluster.world());
    });

}  // namespace

Registry<GradientSyncFactory>& gradient_syncs() {
  static Registry<GradientSyncFactory> all("gradient sync");
  return all;
}

}  // namespace millrace
