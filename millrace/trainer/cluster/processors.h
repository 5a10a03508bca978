// Which processors a rank computes on: ranks that share a host take a part each, as numactl would
// have them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace millrace {

class Cluster;

/// Hardware threads by the system's numbers, as taskset writes them: "0-3,8".
using Processors = std::string;

/// Those that this process may use: what a container, a launcher or taskset has left it.
Processors allowed_processors();
/// How many those are, at least 1.
std::size_t allowed_processor_count();

/// A host as hwloc describes it.
struct Host {
  std::string description;  // hwloc's synthetic form or XML, for tests; empty: this machine
  // The i-th process keeps to processors near the i-th GPU, where there is one
  bool near_gpus = false;
};

/// The part of the `mine`-th process of a host; `allowed[i]` is what the i-th may use. Those that
/// may use the same share it out in whole cores, neighbours together, so that ranks which a
/// launcher has bound apart stay there. Where there are fewer cores than processes, each has all of
/// them. Throws Error where hwloc fails.
Processors share_of_processors(const std::vector<Processors>& allowed, std::size_t mine,
                               const Host& host = {});

/// Whether processes were bound apart to less than half of the host's processors between them, as
/// mpirun binds two: to a core each.
bool are_bound_narrowly(const std::vector<Processors>& allowed, const Host& host = {});

/// Binds all threads of this process to its share among the ranks of its host, and says so. Alone,
/// nothing changes. Every rank calls it, before there is any work. Throws Error.
void bind_to_share(const Cluster& cluster, bool near_gpus);

}  // namespace millrace
