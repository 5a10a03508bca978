// A plan compiled into a running oneTBB graph, with one node per declared stage:
//
//   line -> map ... -> sequencer -> group (serial) -> map ... -> sequencer -> deliver -> ready
//
// Tickets bound the samples in flight: an item is issued for each ticket given back, by the
// consumer when it takes a batch or by `deliver` when a group is skipped. No node's body ever
// blocks.
//
// The line issues the members of one planned group after the other, so that none waits incomplete.
#include <fmt/format.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/dataflow/engine/grouper.h"
#include "millrace/dataflow/engine/in_flight.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/plan.h"
#include "millrace/dataflow/engine/skip_ledger.h"
#include "millrace/dataflow/engine/source_line.h"
#include "millrace/dataflow/engine/stage_runner.h"

namespace millrace {
namespace {

namespace flow = oneapi::tbb::flow;

/// The nodes that samples or groups pass: maps, then the sequencer that restores their order.
template <class ItemPtr>
struct Chain {
  std::list<flow::function_node<ItemPtr, ItemPtr>> maps;
  std::optional<flow::sequencer_node<ItemPtr>> in_order;
};

using GroupNode = flow::multifunction_node<SamplePtr, std::tuple<GroupPtr>>;
using DeliverNode = flow::function_node<GroupPtr>;
using PumpNode = flow::function_node<flow::continue_msg>;

/// Returns the samples that one rank takes in `epochs`, rounded up.
std::int64_t samples_of(double epochs, const Order& order, const FlowOptions& options) {
  const double share = static_cast<double>(order.size()) / static_cast<double>(options.ranks);
  return static_cast<std::int64_t>(std::ceil(epochs * share));
}

/// Allows TBB a worker thread for the graph if it has none, which is its default on one core.
/// Throws Error if the process does not permit it.
std::optional<oneapi::tbb::global_control> worker_if_none() {
  using oneapi::tbb::global_control;
  constexpr auto kThreads = global_control::max_allowed_parallelism;
  std::optional<global_control> control;
  if (global_control::active_value(kThreads) < 2) control.emplace(kThreads, 2);
  if (global_control::active_value(kThreads) < 2)
    throw Error("a flow needs its own thread, but this process limits TBB to one thread in total");
  return control;
}

/// Adds its lifetime to a sum.
class WaitClock {
 public:
  explicit WaitClock(std::atomic<std::int64_t>& sum) : sum_(sum) {}
  ~WaitClock() { sum_ += std::chrono::nanoseconds(Clock::now() - start_).count(); }

 private:
  std::atomic<std::int64_t>& sum_;
  const Clock::time_point start_ = Clock::now();
};

/// A running graph for one consumer thread. The destructor cancels running work and leaves no
/// thread running.
class FlowGraph final : public DataFlow<Message>, public NumberedFlow<Message> {
 public:
  /// Makes all groups in order, or, if `by_number`, those requested; the caller must use only the
  /// matching interface. `wake` (may be empty) is called for each item that becomes ready.
  /// REQUIRES: plan and options checked, threads and in_flight set.
  FlowGraph(Plan plan, const FlowOptions& options, bool by_number, WakeUp wake);
  ~FlowGraph() override;

  std::optional<Delivery<Message>> next() override;
  bool is_ready(std::chrono::milliseconds most) override;
  void ask(std::int64_t number) override;
  std::optional<Made<Message>> take() override;
  std::int64_t epoch_size() const override { return order_.size(); }
  FlowReport report() const override;

 private:
  struct Nodes;

  void issue();
  void run_stage(std::size_t k, Item& item, std::span<const Place> samples);
  GroupPtr take_into_group(std::size_t k, SamplePtr sample);
  void deliver(GroupPtr item);
  Delivery<Message> hand_over(GroupItem& item);
  void reissue(std::int64_t tickets, std::size_t bytes);
  std::size_t expected_bytes(const Item& sample) const;

  const Plan plan_;
  const FlowOptions options_;
  const bool by_number_;
  const WakeUp wake_;
  const Order order_;
  SampleKeys keys_;  // used only by the line
  SourceLine line_;
  SamplePtr next_;  // next item of the line, waiting for a ticket; used only by the pump
  StageRunner runner_;
  Grouper grouper_;  // used only by the serial group node
  SkipLedger ledger_;
  Tickets tickets_;
  ReadyQueue ready_;
  std::atomic<std::int64_t> wait_ns_ = 0;
  bool ended_ = false;            // the consumer has reached the end
  std::unique_ptr<Nodes> nodes_;  // declared last, so that it is destroyed first
};

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
  std::optional<PumpNode> pump;  // issues items for tickets given back
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
      owner.run_stage(stage, *sample, {&sample->at, 1});
    });
    flow::make_edge(*samples.in_order, *group);
    make(groups, &flow::output_port<0>(*group), k + 1, stages.size(),
         [&owner](std::size_t stage, const GroupPtr& item) {
           owner.run_stage(stage, *item, item->members);
         });
    flow::make_edge(*groups.in_order, *deliver);
  };
  arena.execute(compile);  // a graph runs in the arena that creates it
}

/// Makes parallel nodes for the stages first .. last-1 in sequence, then the sequencer. `before`
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

FlowGraph::FlowGraph(Plan plan, const FlowOptions& options, bool by_number, WakeUp wake)
    : plan_(std::move(plan)),
      options_(options),
      by_number_(by_number),
      wake_(std::move(wake)),
      order_(plan_.size, plan_.repeats, options.seed, options.shuffle),
      keys_(plan_),
      line_(order_, GroupPlan(order_, keys_, options, plan_.batch() * options.ranks), options.rank,
            plan_.batch(), by_number),
      runner_(plan_, order_, options),
      grouper_(plan_.group(), samples_of(2, order_, options)),
      // A consumer that requests only some numbers of a flow cannot judge max_skipped.
      ledger_(by_number ? std::numeric_limits<std::int64_t>::max()
                        : samples_of(options.max_skipped, order_, options)),
      tickets_(plan_.batch(), options.in_flight, options.in_flight_bytes),
      nodes_(std::make_unique<Nodes>(*this, plan_.stages, options.threads)) {
  reissue(0, 0);
}

FlowGraph::~FlowGraph() { line_.stop(); }

std::optional<Delivery<Message>> FlowGraph::next() {
  if (ended_) return std::nullopt;
  GroupPtr item;
  {
    const WaitClock waiting(wait_ns_);
    item = ready_.pop(/*wait=*/true);
  }
  runner_.leave(plan_.stages.size());
  if (item->message) return hand_over(*item);
  ended_ = true;
  line_.stop();
  // Moved out, so that a worker which still holds the item does not release the exception too.
  if (item->failure) std::rethrow_exception(std::exchange(item->failure, nullptr));
  return std::nullopt;
}

bool FlowGraph::is_ready(std::chrono::milliseconds most) {
  const WaitClock waiting(wait_ns_);
  return ended_ || ready_.wait_for(most);
}

void FlowGraph::ask(std::int64_t number) {
  if (number < 0) throw std::invalid_argument(fmt::format("item number {} is negative", number));
  line_.ask(number);
  reissue(0, 0);
}

std::optional<Made<Message>> FlowGraph::take() {
  const auto item = ready_.pop(/*wait=*/false);
  if (!item) return std::nullopt;
  runner_.leave(plan_.stages.size());
  Made<Message> made{.number = item->group->number, .skipped = std::move(item->skipped)};
  if (item->message) {
    made.item = hand_over(*item);
    return made;
  }
  made.failure = std::exchange(item->failure, nullptr);
  if (!made.failure)
    made.failure = std::make_exception_ptr(Error(fmt::format(
        "item {} {}", made.number,
        item->group->positions.empty() ? "is past the end of the flow" : "has no usable sample")));
  reissue(item->tickets, item->bytes);
  return made;
}

/// Makes the delivery of an item with a message, and gives back its tickets.
Delivery<Message> FlowGraph::hand_over(GroupItem& item) {
  runner_.count(plan_.stages.size(), 0);
  reissue(item.tickets, item.bytes);
  const auto& [number, positions, cursor, failure] = *item.group;
  const auto taken = cursor.next - std::ssize(cursor.pending);
  return {std::move(item.message), cursor, order_.epoch(positions.front()),
          static_cast<double>(taken) / static_cast<double>(order_.size()), number};
}

/// Gives tickets back and lets the graph issue items for them, since the line may have to walk far.
void FlowGraph::reissue(std::int64_t tickets, std::size_t bytes) {
  tickets_.give_back(tickets, bytes);
  nodes_->pump->try_put(flow::continue_msg());
}

/// Returns the memory that a sample will take; 0 if the source does not know.
std::size_t FlowGraph::expected_bytes(const Item& sample) const {
  if (options_.in_flight_bytes == 0 || !sample.message || !plan_.about || !plan_.about->bytes)
    return 0;
  try {
    return plan_.about->bytes(sample.at.turn.sample);
  } catch (const std::exception&) {  // the first stage reports it
    return 0;
  }
}

void FlowGraph::issue() {
  for (;;) {
    if (!next_ && (next_ = line_.next())) next_->bytes = expected_bytes(*next_);
    if (!next_ || !tickets_.take(next_->bytes)) return;
    auto sample = std::move(next_);
    if (plan_.expect && !sample->group->positions.empty()) plan_.expect(sample->at.turn.sample);
    runner_.arrive(0);
    nodes_->samples.maps.front().try_put(std::move(sample));
  }
}

void FlowGraph::run_stage(std::size_t k, Item& item, std::span<const Place> samples) {
  runner_.run(k, item, samples,
              static_cast<std::size_t>(oneapi::tbb::this_task_arena::current_thread_index()));
  auto bytes = item.message ? plan_.stages[k].yields.bytes(item.message) : 0;
  if (item.message && bytes == 0) return;  // the sample is not decoded yet
  tickets_.record_size(bytes / std::max<std::size_t>(samples.size(), 1));
  std::swap(item.bytes, bytes);
  if (tickets_.settle(bytes, item.bytes)) nodes_->pump->try_put(flow::continue_msg());
}

/// Returns the group that the sample closes, or nullptr. `k` is the index of the group stage, or
/// the number of stages if not found.
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

/// Passes an item to the consumer, in order, or reissues its tickets if it was skipped.
void FlowGraph::deliver(GroupPtr item) {
  const bool lost = !item->message && !item->failure && !item->group->positions.empty();
  if (lost && options_.partial == Partial::wrap) runner_.refill(*item);
  try {
    for (const auto& skipped : item->skipped) ledger_.record(skipped);
  } catch (...) {
    item->message = {};
    if (!item->failure) item->failure = std::current_exception();
  }
  if (lost && !item->message && !item->failure && !by_number_) {
    runner_.leave(plan_.stages.size());
    reissue(item->tickets, item->bytes);
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

constexpr std::int64_t kMostRanks = 1 << 16;

/// Throws ConfigError for an invalid cursor, which may come from a file or another process.
void check_cursor(const Cursor& cursor) {
  const auto& pending = cursor.pending;
  const bool ascending =
      std::ranges::adjacent_find(pending, std::ranges::greater_equal()) == pending.end();
  const bool inside = pending.empty() || (pending.front() >= 0 && pending.back() < cursor.next);
  constexpr auto kFarthest = std::numeric_limits<std::int64_t>::max() / 2;
  if (cursor.next < 0 || cursor.next > kFarthest || !ascending || !inside)
    throw ConfigError(
        fmt::format("a flow cannot start at position {} with {} pending before it; no flow "
                    "produced this cursor",
                    cursor.next, pending.size()));
}

/// Returns the options with defaults filled in. Throws ConfigError for invalid ones.
FlowOptions settled(const Plan& plan, FlowOptions options) {
  if (options.ranks < 1 || options.ranks > kMostRanks || options.rank < 0 ||
      options.rank >= options.ranks)
    throw ConfigError(fmt::format(
        "rank {} of {} ranks is invalid; expected ranks from 1 to {} and 0 <= rank < ranks",
        options.rank, options.ranks, kMostRanks));
  check_cursor(options.start);
  if (options.threads <= 0) options.threads = oneapi::tbb::info::default_concurrency();
  const auto least = plan.batch();
  if (options.in_flight == 0)  // keeps the threads busy with groups
    options.in_flight = least + 2 * (options.threads + least);
  if (options.in_flight < least)
    throw ConfigError(fmt::format(
        "in_flight = {} would deadlock; a group of {} samples needs at least as many in flight",
        options.in_flight, least));
  return options;
}

std::unique_ptr<FlowGraph> start_graph(Plan plan, const MessageType& yields,
                                       const FlowOptions& options, bool by_number, WakeUp wake) {
  check_yields(plan, yields);
  const auto how = settled(plan, options);
  return std::make_unique<FlowGraph>(std::move(plan), how, by_number, std::move(wake));
}

}  // namespace

std::unique_ptr<DataFlow<Message>> start_untyped(Plan plan, const MessageType& yields,
                                                 const FlowOptions& options) {
  return start_graph(std::move(plan), yields, options, /*by_number=*/false, {});
}

std::unique_ptr<NumberedFlow<Message>> start_untyped_numbered(Plan plan, const MessageType& yields,
                                                              const FlowOptions& options,
                                                              WakeUp wake) {
  return start_graph(std::move(plan), yields, options, /*by_number=*/true, std::move(wake));
}

}  // namespace millrace
