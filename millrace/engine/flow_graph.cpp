// One graph node a declared stage:
//
//   line -> map ... map -> sequencer -> group (serial) -> map ... map -> sequencer -> deliver -> ready
//
// Tickets bound what is in flight (see Tickets): an item is issued for each ticket that comes back,
// from the consumer that takes a batch or from `deliver` when a group was left out. No body ever blocks.
//
// The line gives the members of planned groups one group behind the other, so that none waits half-filled.
#include "millrace/engine/flow_graph.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <optional>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"

namespace millrace {
namespace {

namespace flow = oneapi::tbb::flow;

using MapNode = flow::function_node<ItemPtr, ItemPtr>;
using GroupNode = flow::multifunction_node<ItemPtr, std::tuple<ItemPtr>>;
using SequencerNode = flow::sequencer_node<ItemPtr>;
using DeliverNode = flow::function_node<ItemPtr>;
using PumpNode = flow::function_node<flow::continue_msg>;

const auto by_number = [](const ItemPtr& item) { return static_cast<std::size_t>(item->number); };

/// Samples of an epoch that one rank takes.
double share(const Order& order, const FlowOptions& options) {
  return static_cast<double>(order.size()) / static_cast<double>(options.ranks);
}

std::int64_t skip_budget(const Order& order, const FlowOptions& options) {
  return static_cast<std::int64_t>(std::ceil(options.max_skipped * share(order, options)));
}

std::int64_t two_epochs(const Order& order, const FlowOptions& options) {
  return static_cast<std::int64_t>(std::ceil(2 * share(order, options)));
}

/// A graph needs a worker, and a machine with one core has none unless the process asks for it (main does).
std::optional<oneapi::tbb::global_control> worker_if_none() {
  using oneapi::tbb::global_control;
  constexpr auto kThreads = global_control::max_allowed_parallelism;
  std::optional<global_control> control;
  if (global_control::active_value(kThreads) < 2) control.emplace(kThreads, 2);
  if (global_control::active_value(kThreads) < 2)
    throw Error("a flow needs a thread of its own, but this process allows TBB only one in all");
  return control;
}

/// Adds up the time while it lives.
class WaitClock {
 public:
  explicit WaitClock(std::atomic<std::int64_t>& sum) : sum_(sum) {}
  ~WaitClock() { sum_ += std::chrono::nanoseconds(Clock::now() - start_).count(); }

 private:
  std::atomic<std::int64_t>& sum_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

struct FlowGraph::Nodes {
  Nodes(FlowGraph& owner, const std::vector<Stage>& stages, int threads);
  ~Nodes() {
    graph->cancel();
    graph->wait_for_all();
  }
  void add_maps(FlowGraph& owner, std::size_t first, std::size_t last, SequencerNode& sequencer);

  const std::optional<oneapi::tbb::global_control> worker = worker_if_none();
  oneapi::tbb::task_arena arena;
  std::optional<flow::graph> graph;
  std::list<MapNode> maps;
  std::optional<SequencerNode> order_samples, order_groups;
  std::optional<GroupNode> group;
  std::optional<DeliverNode> deliver;
  std::optional<PumpNode> pump;  // issues what was asked for
};

FlowGraph::Nodes::Nodes(FlowGraph& owner, const std::vector<Stage>& stages, int threads)
    : arena(threads, /*reserved_for_masters=*/0) {
  const auto compile = [&] {
    graph.emplace();
    order_samples.emplace(*graph, by_number);
    order_groups.emplace(*graph, by_number);
    const auto k =
        static_cast<std::size_t>(std::ranges::find_if(stages, &Stage::is_group) - stages.begin());
    group.emplace(*graph, flow::serial,
                  [&owner, k](ItemPtr item, GroupNode::output_ports_type& out) {
                    if (auto whole = owner.take_into_group(k, std::move(item)))
                      std::get<0>(out).try_put(std::move(whole));
                  });
    deliver.emplace(*graph, flow::serial,
                    [&owner](ItemPtr item) { owner.deliver(std::move(item)); });
    pump.emplace(*graph, flow::serial, [&owner](const flow::continue_msg&) { owner.issue(0); });

    add_maps(owner, 0, k, *order_samples);
    flow::make_edge(*order_samples, *group);
    add_maps(owner, k + 1, stages.size(), *order_groups);
    flow::make_edge(*order_groups, *deliver);
  };
  arena.execute(compile);  // a graph runs in the arena where it is made
}

/// A chain of parallel nodes for the stages first .. last-1, in front of `sequencer`.
void FlowGraph::Nodes::add_maps(FlowGraph& owner, std::size_t first, std::size_t last,
                                SequencerNode& sequencer) {
  const bool behind_group = first > 0;
  flow::sender<ItemPtr>* before = behind_group ? &flow::output_port<0>(*group) : nullptr;
  for (auto k = first; k < last; ++k) {
    auto& node = maps.emplace_back(*graph, flow::unlimited, [&owner, k](ItemPtr item) {
      return owner.run_stage(k, std::move(item));
    });
    if (before) flow::make_edge(*before, node);
    before = &node;
  }
  flow::make_edge(*before, sequencer);
}

FlowGraph::FlowGraph(Plan plan, const FlowOptions& options, bool on_demand, WakeUp wake)
    : plan_(std::move(plan)),
      options_(options),
      on_demand_(on_demand),
      wake_(std::move(wake)),
      order_(plan_.size, plan_.repeats, options.seed, options.shuffle),
      keys_(plan_),
      line_(order_, GroupPlan(order_, keys_, options, plan_.batch() * options.ranks),
            {options.rank, plan_.batch()}, on_demand),
      runner_(plan_, order_, options),
      grouper_(plan_.group(), two_epochs(order_, options)),
      ledger_(on_demand ? std::numeric_limits<std::int64_t>::max() : skip_budget(order_, options)),
      tickets_(plan_.batch(), options.in_flight, options.in_flight_bytes),
      nodes_(std::make_unique<Nodes>(*this, plan_.stages, options.threads)) {
  issue(0);
}

FlowGraph::~FlowGraph() { line_.stop(); }

void FlowGraph::ask(std::int64_t number) {
  line_.ask(number);
  reissue(0);
}

ItemPtr FlowGraph::take() { return taken(ready_.try_pop()); }

ItemPtr FlowGraph::wait() {
  const WaitClock waiting(wait_ns_);
  return taken(ready_.pop());
}

bool FlowGraph::wait_for(std::chrono::milliseconds most) {
  const WaitClock waiting(wait_ns_);
  return ready_.wait_for(most);
}

ItemPtr FlowGraph::taken(ItemPtr item) {
  if (item) runner_.leave(plan_.stages.size());
  return item;
}

Delivery<Message> FlowGraph::hand_over(Item& item) {
  runner_.count(plan_.stages.size(), 0);
  reissue(item.tickets);
  const auto progress = progress_at(item.cursor);
  return {std::move(item.message), std::move(item.cursor), item.group_epoch, progress, item.group};
}

/// On demand it is left to the graph, since the line may have to walk far to what was asked for.
void FlowGraph::reissue(std::int64_t tickets) {
  if (!on_demand_) return issue(tickets);
  tickets_.give_back(tickets);
  nodes_->pump->try_put(flow::continue_msg());
}

void FlowGraph::issue(std::int64_t returned) {
  for (auto tickets = tickets_.exchange(returned); tickets > 0; --tickets) {
    auto item = line_.next();
    if (!item) return tickets_.give_back(tickets);  // for what is still to be asked for
    runner_.arrive(0);
    nodes_->maps.front().try_put(std::move(item));
  }
}

ItemPtr FlowGraph::run_stage(std::size_t k, ItemPtr item) {
  const auto worker =
      static_cast<std::size_t>(oneapi::tbb::this_task_arena::current_thread_index());
  runner_.run(k, *item, worker);
  if (item->message)
    tickets_.saw(plan_.stages[k].yields.bytes(item->message) /
                 static_cast<std::size_t>(item->samples()));
  return item;
}

/// The group that the item closes, nullptr where it closes none. `k`: where the group stage stands, if there is one.
ItemPtr FlowGraph::take_into_group(std::size_t k, ItemPtr item) {
  const bool declared = k < plan_.stages.size();
  const auto start = Clock::now();
  auto group = grouper_.take(std::move(item));
  if (declared) {
    runner_.leave(k);
    runner_.count(k, std::chrono::nanoseconds(Clock::now() - start).count());
    if (group) runner_.arrive(k + 1);
  }
  return group;
}

/// In order: what the consumer must see goes to it; tickets of what it need not see go out again.
void FlowGraph::deliver(ItemPtr item) {
  const bool lost = !item->message && !item->failure && !item->end;
  if (lost && options_.partial == Partial::wrap) runner_.refill(*item);
  try {
    for (const auto& skipped : item->skipped) ledger_.record(skipped);
  } catch (...) {
    item->message = {};
    if (!item->failure) item->failure = std::current_exception();
  }
  if (item->message || item->failure || item->end || on_demand_) {
    ready_.push(std::move(item));
    if (wake_) wake_();
    return;
  }
  runner_.leave(plan_.stages.size());
  reissue(item->tickets);
}

double FlowGraph::progress_at(const Cursor& cursor) const {
  return static_cast<double>(cursor.next - std::ssize(cursor.pending)) /
         static_cast<double>(order_.size());
}

FlowReport FlowGraph::report() const {
  FlowReport report;
  report.stages = runner_.report();
  report.wait_s = static_cast<double>(wait_ns_) * 1e-9;
  report.filtered = runner_.filtered() + line_.filtered() / options_.ranks;
  report.in_work = runner_.in_work();
  ledger_.report(report);
  return report;
}

}  // namespace millrace
