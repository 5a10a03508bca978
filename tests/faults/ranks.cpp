// faults_ranks FOLDER FAULT [STEPS]: one rank of a run that trains the fake detector, started by
// mpirun. At its sixth step, FAULT happens to the last rank: step, callback or data (an exception
// is thrown there), kill, crash, stall, late (its data never arrives) or none. slow: every rank is
// late for some MPI collectives. Each rank writes its process id to FOLDER/pid-RANK, and its last
// events where a run's ranks write theirs.
#include <mpi.h>

#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "millrace/base/log.h"
#include "millrace/trainer/status/status_writer.h"
#include "tests/callbacks/training.h"

namespace millrace {
namespace {

constexpr std::int64_t kStep = 5;  // number of steps before the fault

bool comes_late = false;

/// Waits before some of the collective calls.
void come_late() {
  thread_local std::mt19937 random(static_cast<unsigned>(::getpid()));
  if (comes_late && random() % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

struct Fault {
  std::string what;
  bool is_mine = false;
  std::int64_t step = 0;  // current step, from 0

  bool is(const std::string& name) const { return is_mine && what == name && step == kStep; }
};

struct FaultyDetector final : testing::LineDetector {
  explicit FaultyDetector(const Fault& happening) : fault(happening) {}
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    if (fault.is("step")) throw Error("losses fail on purpose");
    return LineDetector::compute_losses(batch, step);
  }
  const Fault& fault;
};

struct FaultyFlow final : testing::FakeFlow {
  FaultyFlow(const Fault& happening, std::int64_t start)
      : FakeFlow(testing::kEpochImages, start, 1 << 30), fault(happening) {}
  std::optional<Delivery<Batch>> next() override {
    if (fault.is("data")) throw DataError("photo.jpg", "not an image");
    return FakeFlow::next();
  }
  bool is_ready(std::chrono::milliseconds wait) override {
    if (!fault.is("late")) return true;
    std::this_thread::sleep_for(wait);
    return false;
  }
  const Fault& fault;
};

int run(const Cluster& cluster, const std::string& folder, const std::string& what,
        std::int64_t steps) {
  std::ofstream(fmt::format("{}/pid-{}", folder, cluster.rank())) << ::getpid();
  if (cluster.is_chief()) std::ofstream(folder + "/record.json") << "{}";
  cluster.set_timeout(2);
  const RankEvents events(cluster, folder);
  Fault fault{what, cluster.rank() == cluster.size() - 1};
  comes_late = what == "slow";
  testing::Training training{.folder = folder, .cluster = &cluster};
  training.make_model = [&] { return std::make_unique<FaultyDetector>(fault); };
  training.adjust = [&](TrainPlan& plan) {
    plan.start_data = [&](const Cursor& start) {
      return std::make_unique<FaultyFlow>(fault, start.next);
    };
    if (steps == 0) return;
    plan.train.epochs = 1e6;
    plan.train.max_steps = steps;
  };
  training.add = [&](CallbackList& list) {
    testing::LambdaCallback callback;
    callback.on_all_ranks = true;
    callback.on_before_step = [&](const TrainState& state) {
      fault.step = state.at.step;
      if (steps > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (fault.is("kill")) ::raise(SIGKILL);
      if (fault.is("crash")) ::raise(SIGSEGV);
      if (fault.is("stall")) ::raise(SIGSTOP);
      if (fault.is("callback")) throw Error("callback fails on purpose");
    };
    list.add("faulty", std::make_unique<testing::LambdaCallback>(callback));
  };
  return training().signalled ? 3 : 0;
}

}  // namespace
}  // namespace millrace

// Replaces MPI's function through its profiling interface.
int MPI_Iallgather(const void* sent, int count, MPI_Datatype type, void* received, int each,
                   MPI_Datatype of, MPI_Comm ranks, MPI_Request* request) {
  millrace::come_late();
  return PMPI_Iallgather(sent, count, type, received, each, of, ranks, request);
}

int MPI_Ialltoallv(const void* sent, const int counts[], const int starts[], MPI_Datatype type,
                   void* received, const int each[], const int to[], MPI_Datatype of,
                   MPI_Comm ranks, MPI_Request* request) {
  millrace::come_late();
  return PMPI_Ialltoallv(sent, counts, starts, type, received, each, to, of, ranks, request);
}

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  millrace::start_logging();
  return millrace::Cluster::run([&](const millrace::Cluster& cluster) {
    return millrace::run(cluster, arguments.at(0), arguments.at(1),
                         arguments.size() > 2 ? std::stoll(arguments[2]) : 0);
  });
}
