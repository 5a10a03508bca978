// The processes that train together, one per GPU or part of a CPU: ranks.
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

/// One of the processes that mpirun or srun started together, or the only one. Its exchanges are
/// small: every rank makes the same calls in the same order, on one thread. A call that some rank
/// does not come to times out (see `set_patience`): a message says who is missing, and all
/// processes end.
class Cluster {
 public:
  /// A cluster of this process alone.
  static const Cluster& alone();
  ~Cluster();
  Cluster(const Cluster&) = delete;

  /// Runs `work` in the cluster that this process was started in (mpirun, or srun with PMIx), or
  /// alone. What it throws ends all ranks, with this rank's name in front; alone it is thrown on.
  /// Returns the highest value of all ranks. Once per process.
  static int run(const std::function<int(const Cluster&)>& work);

  /// The same, with MPI also where mpirun has started one process alone: `world` is never nullptr.
  static int run_with_world(const std::function<int(const Cluster&)>& work);

  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return size_; }
  bool is_chief() const { return rank_ == 0; }
  /// Among the ranks of this host.
  std::int64_t local_rank() const { return local_rank_; }
  std::int64_t local_size() const { return local_size_; }
  /// "rank 3 (host b)".
  std::string name(std::int64_t rank) const;
  std::string name() const { return name(rank_); }

  /// What every rank gives, by rank. `what` names the call in messages.
  std::vector<std::string> gather(std::string_view what, std::string_view mine) const;
  /// What the chief gives.
  std::string broadcast(std::string_view what, std::string_view mine) const;
  /// As many numbers of every rank, one rank's after the other's.
  std::vector<double> numbers(std::string_view what, std::span<const double> mine) const;
  /// Returns once all ranks have called it.
  void meet(std::string_view what) const { gather(what, {}); }

  /// How many of the calls above there have been.
  std::int64_t exchanges() const { return exchanges_; }

  /// Total seconds that this rank has waited for others in the calls above.
  double waited_s() const { return waited_s_; }

  /// The timeout, in seconds; ten minutes at first.
  void set_patience(double seconds) const;
  /// All ranks have agreed to end: a signal no longer shortens the timeout.
  void set_ending() const;
  /// Where this rank stands, for messages: "step 12".
  void set_place(std::string place) const;

  /// The connection of the ranks, for other uses of MPI; nullptr if `run` has one rank.
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
