// MPI with a timeout for every wait.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/events/event_ring.h"

namespace millrace {

/// Initializes and finalizes MPI; once per process.
class MpiWorld {
 public:
  /// Returns true if mpirun or srun started this process together with others. Throws ConfigError
  /// for srun without PMIx.
  static bool is_mpi_process();

  /// Throws Error if MPI lacks a required feature.
  MpiWorld();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  std::string name(int rank) const;

  /// Returns the texts of all ranks; see Cluster::gather.
  std::vector<std::string> gather(std::string_view what, std::string_view mine);

  /// Returns a communicator of all ranks for one user and one thread. Every rank creates the same
  /// communicators in the same order.
  MPI_Comm communicator();

  /// Records an exchange of all ranks as an event during its lifetime, with the number of bytes
  /// that this rank has received in it. MILLRACE_FAULTS can delay or stop the rank here. Construct
  /// it before the first message; thread-safe.
  class Exchange {
   public:
    Exchange(MpiWorld& world, std::string_view what);
    ~Exchange();
    Exchange(const Exchange&) = delete;

   private:
    MpiWorld& world_;
    const std::int64_t received_;
    std::optional<Event> event_;
  };

  /// Waits for all of `requests`, which become null. After the timeout, which a stop signal
  /// shortens, it asks which ranks are waiting too, logs those that are not, and ends all ranks.
  /// `what` names the call, e.g. "gradients". Throws Error for a failure reported by MPI.
  /// Thread-safe.
  void wait(std::span<MPI_Request> requests, std::string_view what);

  /// Ends all ranks immediately.
  [[noreturn]] void abort(int exit_code);

  void set_timeout(double seconds) { timeout_s_ = seconds; }
  double timeout() const { return timeout_s_; }
  void set_ending() { is_ending_ = true; }
  void set_place(std::string place);

  /// An exchange in which this rank has been waiting for more than a tenth of a second.
  struct Waiting {
    std::string what;   // name of the exchange, e.g. "agreement on the step"
    std::string place;  // position of the rank, e.g. "step 12"
    Clock::time_point since;
  };
  /// Returns the longest wait; nullopt if nothing waits. Thread-safe.
  std::optional<Waiting> waiting();

  /// Bytes that this rank has sent to and received from other ranks. Thread-safe.
  struct Traffic {
    std::int64_t sent = 0, received = 0;
  };
  Traffic traffic() const { return {sent_, received_}; }
  /// Adds the bytes of an exchange made with communicator().
  void count(std::int64_t sent, std::int64_t received) {
    sent_ += sent;
    received_ += received;
  }

 private:
  class Wait;
  std::string place();
  std::string place_or_start() const { return place_.empty() ? "the start" : place_; }
  [[noreturn]] void abort_wait(std::string_view what, const std::string& why);
  std::map<int, std::string> query_waiting_ranks(const std::string& here);

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  std::vector<std::string> hosts_;  // host names by rank
  MPI_Comm agreements_ = MPI_COMM_NULL, queries_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> communicators_;
  std::atomic<double> timeout_s_ = 600;
  std::atomic<bool> is_ending_ = false;
  std::mutex mutex_;             // guards the next three members
  std::string place_;            // position of the rank, e.g. "step 12"
  std::list<Waiting> waitings_;  // current waits, one per thread
  /// Number of exchanges begun so far, by name.
  std::map<std::string, std::int64_t, std::less<>> exchanges_;
  std::atomic<std::int64_t> sent_ = 0, received_ = 0;
  std::mutex aborting_;
};

/// Throws Error with MPI's message unless `code` is MPI_SUCCESS; `what` names the call.
void check_mpi(int code, std::string_view what);

}  // namespace millrace
