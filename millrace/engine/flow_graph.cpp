// One graph node a declared stage:
//
//   line -> map ... -> sequencer -> group (serial) -> map ... -> sequencer -> deliver -> ready
//
// Tickets bound what is in flight (see Tickets): an item is issued for each ticket that comes back,
// from the consumer that takes a batch or from `deliver` when a group was left out. No body ever
// blocks.
//
// The line gives the members of planned groups one group after the other, so that none waits
// half-filled.
#include "millrace/engine/flow_graph.h"

#include <fmt/format.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"

namespace millrace {
namespace {

namespace flow = oneapi::tbb::flow;

/// The nodes that samples go through, or groups: a chain of maps and what restores the order after
/// it.
template <class ItemPtr>
struct Chain {
  std::list<flow::function_node<ItemPtr, ItemPtr>> maps;
  std::optional<flow::sequencer_node<ItemPtr>> in_order;
};

using GroupNode = flow::multifunction_node<SamplePtr, std::tuple<GroupPtr>>;
using DeliverNode = flow::function_node<GroupPtr>;
using PumpNode = flow::function_node<flow::continue_msg>;

/// Samples of an epoch that one rank takes.
double share(const Order& order, const FlowOptions& options) {
  return static_cast<double>(order.size()) / static_cast<double>(options.ranks);
}

/// Turns of samples that an epoch may leave out. Who sees but some numbers of a flow cannot judge
/// that.
std::int64_t skip_budget(const Order& order, const FlowOptions& options, const Feed& feed) {
  return feed.answers_all()
             ? std::numeric_limits<std::int64_t>::max()
             : static_cast<std::int64_t>(std::ceil(options.max_skipped * share(order, options)));
}

std::int64_t two_epochs(const Order& order, const FlowOptions& options) {
  return static_cast<std::int64_t>(std::ceil(2 * share(order, options)));
}

/// A graph needs a worker, and a machine with one core has none unless the process asks for it
/// (main does).
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
  template <class ItemPtr, class Work>
  void make(Chain<ItemPtr>& chain, flow::sender<std::type_identity_t<ItemPtr>>* before,
            std::size_t first, std::size_t last, Work work);

  const std::optional<oneapi::tbb::global_control> worker = worker_if_none();
  oneapi::tbb::task_arena arena;
  std::optional<flow::graph> graph;
  Chain<SamplePtr> samples;
  std::optional<GroupNode> group;
  Chain<GroupPtr> groups;
  std::optional<DeliverNode> deliver;
  std::optional<PumpNode> pump;  // issues items for tickets that have come back
};

FlowGraph::Nodes::Nodes(FlowGraph& owner, const std::vector<Stage>& stages, int threads)
    : arena(threads, /*reserved_for_masters=*/0) {
  const auto compile = [&] {
    graph.emplace();
    const auto k =
        static_cast<std::size_t>(std::ranges::find_if(stages, &Stage::is_group) - stages.begin());
    group.emplace(*graph, flow::serial,
                  [&owner, k](SamplePtr sample, GroupNode::output_ports_type& out) {
                    if (auto whole = owner.take_into_group(k, std::move(sample)))
                      std::get<0>(out).try_put(std::move(whole));
                  });
    deliver.emplace(*graph, flow::serial,
                    [&owner](GroupPtr item) { owner.deliver(std::move(item)); });
    pump.emplace(*graph, flow::serial, [&owner](const flow::continue_msg&) { owner.issue(); });

    make(samples, nullptr, 0, k, [&owner](std::size_t stage, const SamplePtr& sample) {
      owner.run_stage(stage, *sample, 1);
    });
    flow::make_edge(*samples.in_order, *group);
    make(groups, &flow::output_port<0>(*group), k + 1, stages.size(),
         [&owner](std::size_t stage, const GroupPtr& item) {
           owner.run_stage(stage, *item, item->members.size());
         });
    flow::make_edge(*groups.in_order, *deliver);
  };
  arena.execute(compile);  // a graph runs in the arena where it is made
}

/// Parallel nodes for the stages first .. last-1, one after the other, then the sequencer. `before`
/// (may be nullptr) feeds them.
template <class ItemPtr, class Work>
void FlowGraph::Nodes::make(Chain<ItemPtr>& chain,
                            flow::sender<std::type_identity_t<ItemPtr>>* before, std::size_t first,
                            std::size_t last, Work work) {
  for (auto k = first; k < last; ++k) {
    auto& node = chain.maps.emplace_back(*graph, flow::unlimited, [work, k](ItemPtr item) {
      work(k, item);
      return item;
    });
    if (before) flow::make_edge(*before, node);
    before = &node;
  }
  chain.in_order.emplace(
      *graph, [](const ItemPtr& item) { return static_cast<std::size_t>(item->number); });
  flow::make_edge(*before, *chain.in_order);
}

FlowGraph::FlowGraph(Plan plan, const FlowOptions& options, std::unique_ptr<Feed> feed, WakeUp wake)
    : plan_(std::move(plan)),
      options_(options),
      feed_(std::move(feed)),
      wake_(std::move(wake)),
      order_(plan_.size, plan_.repeats, options.seed, options.shuffle),
      keys_(plan_),
      line_(order_, GroupPlan(order_, keys_, options, plan_.batch() * options.ranks),
            {options.rank, plan_.batch()}, *feed_),
      runner_(plan_, order_, options),
      grouper_(plan_.group(), two_epochs(order_, options)),
      ledger_(skip_budget(order_, options, *feed_)),
      tickets_(plan_.batch(), options.in_flight, options.in_flight_bytes),
      nodes_(std::make_unique<Nodes>(*this, plan_.stages, options.threads)) {
  reissue(0);
}

FlowGraph::~FlowGraph() { line_.stop(); }

std::optional<Delivery<Message>> FlowGraph::next() {
  if (ended_) return std::nullopt;
  GroupPtr item;
  {
    const WaitClock waiting(wait_ns_);
    item = ready_.pop();
  }
  runner_.leave(plan_.stages.size());
  if (item->message) return hand_over(*item);
  ended_ = true;
  line_.stop();
  // Moved out, so that no worker that still holds the item lets go of the exception too.
  if (item->failure) std::rethrow_exception(std::exchange(item->failure, nullptr));
  return std::nullopt;
}

bool FlowGraph::is_ready(std::chrono::milliseconds most) {
  const WaitClock waiting(wait_ns_);
  return ended_ || ready_.wait_for(most);
}

void FlowGraph::ask(std::int64_t number) {
  if (number < 0) throw std::invalid_argument(fmt::format("there is no item {}", number));
  feed_->ask(number);
  reissue(0);
}

std::optional<Made<Message>> FlowGraph::take() {
  const auto item = ready_.try_pop();
  if (!item) return std::nullopt;
  runner_.leave(plan_.stages.size());
  Made<Message> made{.number = item->group->number, .skipped = std::move(item->skipped)};
  if (item->message) {
    made.item = hand_over(*item);
    return made;
  }
  made.failure = std::exchange(item->failure, nullptr);
  if (!made.failure)
    made.failure = std::make_exception_ptr(
        Error(fmt::format("item {} {}", made.number,
                          item->group->positions.empty() ? "is past the end of the flow"
                                                         : "has no sample that can be used")));
  reissue(item->tickets);
  return made;
}

/// What the consumer gets of an item that has a message. Its tickets go out again.
Delivery<Message> FlowGraph::hand_over(GroupItem& item) {
  runner_.count(plan_.stages.size(), 0);
  reissue(item.tickets);
  const auto& [number, positions, cursor, failure] = *item.group;
  const auto taken = cursor.next - std::ssize(cursor.pending);
  return {std::move(item.message), cursor, order_.epoch(positions.front()),
          static_cast<double>(taken) / static_cast<double>(order_.size()), number};
}

/// Gives tickets back and leaves it to the graph to issue items for them: the line may have to walk
/// far to the next.
void FlowGraph::reissue(std::int64_t tickets) {
  tickets_.give_back(tickets);
  nodes_->pump->try_put(flow::continue_msg());
}

void FlowGraph::issue() {
  for (auto tickets = tickets_.exchange(0); tickets > 0; --tickets) {
    auto sample = line_.next();
    if (!sample) return tickets_.give_back(tickets);  // for what is still to be asked for
    runner_.arrive(0);
    nodes_->samples.maps.front().try_put(std::move(sample));
  }
}

template <class SomeItem>
void FlowGraph::run_stage(std::size_t k, SomeItem& item, std::size_t samples) {
  const auto worker =
      static_cast<std::size_t>(oneapi::tbb::this_task_arena::current_thread_index());
  runner_.run(k, item, worker);
  if (item.message) tickets_.saw(plan_.stages[k].yields.bytes(item.message) / samples);
}

/// The group that the sample closes, nullptr where it closes none. `k`: where the group stage
/// stands, if there is one.
GroupPtr FlowGraph::take_into_group(std::size_t k, SamplePtr sample) {
  const bool declared = k < plan_.stages.size();
  const auto start = Clock::now();
  auto group = grouper_.take(std::move(sample));
  if (declared) {
    runner_.leave(k);
    runner_.count(k, std::chrono::nanoseconds(Clock::now() - start).count());
    if (group) runner_.arrive(k + 1);
  }
  return group;
}

/// In order: what the consumer must see goes to it; tickets of what it need not see go out again.
void FlowGraph::deliver(GroupPtr item) {
  const bool lost = !item->message && !item->failure && !item->group->positions.empty();
  if (lost && options_.partial == Partial::wrap) runner_.refill(*item);
  try {
    for (const auto& skipped : item->skipped) ledger_.record(skipped);
  } catch (...) {
    item->message = {};
    if (!item->failure) item->failure = std::current_exception();
  }
  if (lost && !item->message && !item->failure && !feed_->answers_all()) {
    runner_.leave(plan_.stages.size());
    reissue(item->tickets);
    return;
  }
  ready_.push(std::move(item));
  if (wake_) wake_();
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
