#include "millrace/trainer/cluster/processors.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>
#include <hwloc.h>
#include <sched.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

using UniqueTopology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

/// A set of processors.
class Set {
 public:
  Set() : bits_(hwloc_bitmap_alloc(), hwloc_bitmap_free) {}
  explicit Set(const Processors& text) : Set() {
    if (hwloc_bitmap_list_sscanf(get(), text.c_str()) != 0)
      throw Error(fmt::format("'{}' is not a list of processors", text));
  }
  hwloc_bitmap_t get() const { return bits_.get(); }
  Processors text() const {
    char* list = nullptr;
    if (hwloc_bitmap_list_asprintf(&list, get()) < 0) throw Error("hwloc: out of memory");
    const std::unique_ptr<char, decltype(&std::free)> owner(list, &std::free);
    return list;
  }

 private:
  std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bits_;
};

void check(int status, const char* what) {
  if (status != 0) throw Error(fmt::format("hwloc cannot {}: {}", what, std::strerror(errno)));
}

UniqueTopology load(const Host& host) {
  hwloc_topology_t raw = nullptr;
  check(hwloc_topology_init(&raw), "initialize");
  UniqueTopology topology(raw, hwloc_topology_destroy);
  if (host.description.starts_with('<'))
    check(hwloc_topology_set_xmlbuffer(raw, host.description.c_str(),
                                       static_cast<int>(host.description.size() + 1)),
          "read the XML");
  else if (!host.description.empty())
    check(hwloc_topology_set_synthetic(raw, host.description.c_str()), "read the description");
  if (!host.gpus.empty())
    check(hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT), "detect GPUs");
  check(hwloc_topology_load(raw), "detect the topology of this machine");
  return topology;
}

/// Returns the processors near the device of this PCI address; nullptr if not found.
hwloc_const_bitmap_t processors_near(hwloc_topology_t topology, const std::string& address) {
  auto* const device = hwloc_get_pcidev_by_busidstring(topology, address.c_str());
  return device ? hwloc_get_non_io_ancestor_obj(topology, device)->cpuset : nullptr;
}

/// Returns part number `part` of `parts` of the cores in `from`; all if there are fewer cores than
/// parts.
Set part_of(hwloc_topology_t topology, const Set& from, std::size_t part, std::size_t parts) {
  std::vector<hwloc_obj_t> cores;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core));)
    if (hwloc_bitmap_intersects(core->cpuset, from.get())) cores.push_back(core);
  Set result;
  if (cores.size() < parts) {
    hwloc_bitmap_copy(result.get(), from.get());
    return result;
  }
  for (auto i = part * cores.size() / parts; i < (part + 1) * cores.size() / parts; ++i)
    hwloc_bitmap_or(result.get(), result.get(), cores[i]->cpuset);
  hwloc_bitmap_and(result.get(), result.get(), from.get());
  return result;
}

/// Returns the processors that the calling thread may use.
Set affinity() {
  constexpr int kMost = 1 << 14;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(kMost),
                                                              [](cpu_set_t* m) { CPU_FREE(m); });
  const auto bytes = CPU_ALLOC_SIZE(kMost);
  CPU_ZERO_S(bytes, mask.get());
  if (::sched_getaffinity(0, bytes, mask.get()) != 0)
    throw Error(
        fmt::format("cannot get the allowed processors of this process: {}", std::strerror(errno)));
  Set set;
  for (unsigned i = 0; i < kMost; ++i)
    if (CPU_ISSET_S(i, bytes, mask.get()))
      check(hwloc_bitmap_set(set.get(), i), "list the allowed processors");
  return set;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

Processors allowed_processors() { return affinity().text(); }

std::size_t allowed_processor_count() {
  return static_cast<std::size_t>(std::max(hwloc_bitmap_weight(affinity().get()), 1));
}

Processors share_of_processors(const std::vector<Processors>& allowed, std::size_t mine,
                               const Host& host) {
  const auto topology = load(host);
  std::vector<Processors> wanted;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const Set set(allowed[i]);
    const auto* near = i < host.gpus.size() && !host.gpus[i].empty()
                           ? processors_near(topology.get(), host.gpus[i])
                           : nullptr;
    if (near && hwloc_bitmap_intersects(set.get(), near))
      hwloc_bitmap_and(set.get(), set.get(), near);
    wanted.push_back(set.text());
  }
  const auto before =
      std::count(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(mine), wanted[mine]);
  const auto all = std::ranges::count(wanted, wanted[mine]);
  return part_of(topology.get(), Set(wanted[mine]), static_cast<std::size_t>(before),
                 static_cast<std::size_t>(all))
      .text();
}

bool are_bound_narrowly(const std::vector<Processors>& allowed, const Host& host) {
  if (std::ranges::count(allowed, allowed.front()) == std::ssize(allowed)) return false;
  const auto topology = load(host);
  const Set used;
  for (const auto& each : allowed) hwloc_bitmap_or(used.get(), used.get(), Set(each).get());
  return 2 * hwloc_bitmap_weight(used.get()) <
         hwloc_bitmap_weight(hwloc_topology_get_topology_cpuset(topology.get()));
}

void bind_to_share(const Cluster& cluster, const std::string& gpu) {
  if (cluster.size() == 1) return;
  const auto host = host_name(), own = allowed_processors();
  std::vector<Processors> allowed;
  Host with_gpus;
  std::size_t mine = 0, rank = 0;
  using Place = std::tuple<std::string, Processors, std::string>;  // host, processors, GPU
  for (const auto& [name, processors, address] :
       gather_values(cluster, "processors", Place(host, own, gpu))) {
    if (name == host) {
      if (rank == static_cast<std::size_t>(cluster.rank())) mine = allowed.size();
      allowed.push_back(processors);
      with_gpus.gpus.push_back(address);
    }
    ++rank;
  }
  if (std::ranges::count(with_gpus.gpus, "") == std::ssize(with_gpus.gpus)) with_gpus.gpus.clear();
  if (mine == 0 && are_bound_narrowly(allowed))
    log_warning(
        "the {} ranks of {} were bound to few of its processors ({}); with mpirun --bind-to none "
        "they share all processors",
        allowed.size(), host, fmt::join(allowed, " and "));
  const auto share = share_of_processors(allowed, mine, with_gpus);
  if (share == own) return;
  const auto topology = load({});
  // If the system forbids it, training is slower but correct.
  if (hwloc_set_cpubind(topology.get(), Set(share).get(), HWLOC_CPUBIND_PROCESS) != 0)
    log_warning("cannot bind {} to processors {}: {}", cluster.name(), share, std::strerror(errno));
  else
    log_debug("{} uses processors {} of {}", cluster.name(), share, own);
}

Threads::Threads(std::int64_t maths, std::int64_t flow) {
  const auto cores = static_cast<std::int64_t>(allowed_processor_count());
  at::set_num_threads(static_cast<int>(maths > 0 ? maths : cores));
  // One more, because oneTBB counts the training thread and a one-core machine needs a worker.
  limit_ = std::make_shared<tbb::global_control>(
      tbb::global_control::max_allowed_parallelism,
      static_cast<std::size_t>((flow > 0 ? flow : cores) + 1));
}

}  // namespace millrace
