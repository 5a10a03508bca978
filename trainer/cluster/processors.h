// Distributes the processors of a host among its ranks, and sets the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

class Cluster;

/// Numbers of hardware threads in the format of taskset: "0-3,8".
using Processors = std::string;

std::string host_name();

/// Returns the processors that this process may use.
Processors allowed_processors();
/// Returns their count, at least 1.
std::size_t allowed_processor_count();

/// Description of a host.
struct Host {
  std::string description;  // hwloc's synthetic form or XML, for tests; empty = this machine
  /// PCI address of each process's GPU, near which the process is bound; empty = no GPU.
  std::vector<std::string> gpus = {};
};

/// Returns the share of process `mine` of a host, where process i may use `allowed[i]`. Processes
/// with the same processors divide them into whole, adjacent cores; processes that a launcher has
/// bound to different processors keep them. If there are fewer cores than processes, each gets all.
/// Throws Error if hwloc fails.
Processors share_of_processors(const std::vector<Processors>& allowed, std::size_t mine,
                               const Host& host = {});

/// Returns true if processes are bound to different processors that make up less than half of the
/// host, as mpirun does with two processes: one core each.
bool are_bound_narrowly(const std::vector<Processors>& allowed, const Host& host = {});

/// Binds all threads of this process to its share among the ranks of its host, near its GPU if
/// `gpu` is a PCI address. Does nothing for a single process. Every rank calls it, before any work.
/// Throws Error.
void bind_to_share(const Cluster& cluster, const std::string& gpu = "");

/// Limits the compute threads (OpenMP) and those of the flow graph (oneTBB) during its lifetime; 0
/// = number of processors. Both may use all cores, since the flow graph's workers sleep while
/// enough batches are ready. Create it before any work.
class Threads {
 public:
  Threads(std::int64_t maths, std::int64_t flow);

 private:
  std::shared_ptr<void> limit_;
};

}  // namespace millrace
