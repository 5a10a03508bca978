// The ranks: processes that train together, one per GPU or per part of a CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class MpiWorld;

/// One of the processes that mpirun or srun started together, or the only process. Its exchanges
/// are small. Every rank makes the same calls in the same order, on one thread. A call that some
/// rank does not make times out (see `set_timeout`): the missing ranks are logged and all
/// processes end.
class Cluster {
 public:
  /// Returns a cluster of this process only.
  static const Cluster& alone();
  ~Cluster();
  Cluster(const Cluster&) = delete;

  /// Runs `work` in the cluster that this process was started in (mpirun, or srun with PMIx), or
  /// alone. An exception of `work` ends all ranks and is logged with this rank's name; a process
  /// that runs alone rethrows it. Returns the highest return value of all ranks. Call once per
  /// process.
  static int run(const std::function<int(const Cluster&)>& work);

  /// Like run(), but uses MPI even if mpirun has started only one process: `world` is never
  /// nullptr.
  static int run_with_world(const std::function<int(const Cluster&)>& work);

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  bool is_chief() const { return rank_ == 0; }
  /// Rank among the processes of this host.
  std::int64_t local_rank() const { return local_rank_; }
  std::int64_t local_size() const { return local_size_; }
  /// Returns e.g. "rank 3 (host b)".
  std::string name(std::int64_t rank) const;
  std::string name() const { return name(rank_); }

  /// Returns the texts of all ranks, by rank. `what` names the call in messages.
  std::vector<std::string> gather(std::string_view what, std::string_view mine) const;
  /// Returns the text of rank 0.
  std::string broadcast(std::string_view what, std::string_view mine) const;
  /// Returns the numbers of all ranks, concatenated by rank. Every rank passes the same count.
  std::vector<double> numbers(std::string_view what, std::span<const double> mine) const;
  /// Returns once all ranks have called it.
  void meet(std::string_view what) const { gather(what, {}); }

  /// Number of the above calls so far.
  std::int64_t exchanges() const { return exchanges_; }

  /// Total seconds that this rank has waited for other ranks in the above calls.
  double waited_s() const { return waited_s_; }

  /// Sets the timeout in seconds; 600 by default.
  void set_timeout(double seconds) const;
  /// Call when all ranks have agreed to end: a signal then no longer shortens the timeout.
  void set_ending() const;
  /// Sets the position of this rank for messages, such as "step 12".
  void set_place(std::string place) const;

  /// Connection of the ranks for other uses of MPI; nullptr if run() has one rank.
  MpiWorld* world() const { return world_.get(); }

 private:
  Cluster();
  explicit Cluster(std::unique_ptr<MpiWorld> world);

  std::unique_ptr<MpiWorld> world_;
  std::int64_t rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  mutable std::int64_t exchanges_ = 0;
  mutable double waited_s_ = 0;
};

}  // namespace millrace
