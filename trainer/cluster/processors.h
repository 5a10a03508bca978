// Which processors a rank computes on, which the ranks of a host share out, and with how many
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

class Cluster;

/// Hardware threads by the system's numbers, as taskset writes them: "0-3,8".
using Processors = std::string;

std::string host_name();

/// Those that this process may use.
Processors allowed_processors();
/// How many, at least 1.
std::size_t allowed_processor_count();

/// A host as hwloc describes it.
struct Host {
  std::string description;  // hwloc's synthetic form or XML, for tests; empty: this machine
  /// PCI address of each process's GPU, near which it keeps; empty: it has none.
  std::vector<std::string> gpus = {};
};

/// The part of the `mine`-th process of a host; the i-th may use `allowed[i]`. Processes that may
/// use the same processors share them in whole, neighbouring cores; those that a launcher has bound
/// apart stay apart. With fewer cores than processes, each has all. Throws Error if hwloc fails.
Processors share_of_processors(const std::vector<Processors>& allowed, std::size_t mine,
                               const Host& host = {});

/// Whether processes were bound apart to less than half of the host's processors, as mpirun binds
/// two: to one core each.
bool are_bound_narrowly(const std::vector<Processors>& allowed, const Host& host = {});

/// Binds all threads of this process to its share among the ranks of its host, near its GPU if
/// `gpu` is the PCI address of one; alone, it does nothing. Every rank calls it, before any work.
/// Throws Error.
void bind_to_share(const Cluster& cluster, const std::string& gpu = "");

/// Limits the threads of the maths (OpenMP) and of the flow graph (oneTBB) while it lives; 0: as
/// many as processors. The flow graph's workers sleep while enough batches are ready, so both may
/// have all cores. Create before any work.
class Threads {
 public:
  Threads(std::int64_t maths, std::int64_t flow);

 private:
  std::shared_ptr<void> limit_;
};

}  // namespace millrace
