// One graph node a declared stage:
//
//   line -> map ... map -> sequencer -> group (serial) -> map ... map -> sequencer -> deliver -> ready
//
// Tickets bound what is in flight (see Tickets): an item is issued for each ticket that comes back,
// from the consumer that takes a batch or from `deliver` when a group was left out. No body ever blocks.
//
// The line gives the members of planned groups one group behind the other, so that none waits half-filled.
#include "dataflow/engine.h"

#include <fmt/format.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <list>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/errors.h"
#include "base/text.h"
#include "dataflow/group_plan.h"
#include "dataflow/grouper.h"
#include "dataflow/ready_queue.h"
#include "dataflow/skip_ledger.h"
#include "dataflow/source_line.h"
#include "dataflow/stage_runner.h"
#include "dataflow/tickets.h"

namespace millrace {
namespace {

namespace flow = oneapi::tbb::flow;

using Clock = std::chrono::steady_clock;
using MapNode = flow::function_node<ItemPtr, ItemPtr>;
using GroupNode = flow::multifunction_node<ItemPtr, std::tuple<ItemPtr>>;
using SequencerNode = flow::sequencer_node<ItemPtr>;
using DeliverNode = flow::function_node<ItemPtr>;

const auto by_number = [](const ItemPtr& item) { return static_cast<std::size_t>(item->number); };

/// Samples of a group on one rank.
std::int64_t batch_of(const Plan& plan) {
  const auto* group = group_of(plan);
  return group ? static_cast<std::int64_t>(group->size) : 1;
}

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

/// The number of the calling thread among those of its arena.
std::size_t worker() {
  return static_cast<std::size_t>(oneapi::tbb::this_task_arena::current_thread_index());
}

class Engine {
 public:
  Engine(Plan plan, const FlowOptions& options, bool on_demand, WakeUp wake = {})
      : plan_(std::move(plan)),
        options_(options),
        order_(plan_.size, plan_.repeats, options.seed, options.shuffle),
        keys_(plan_),
        line_(order_, GroupPlan(order_, keys_, options, batch_of(plan_) * options.ranks),
              {options.rank, batch_of(plan_)}, on_demand),
        runner_(plan_, order_, options),
        grouper_(group_of(plan_), two_epochs(order_, options)),
        ledger_(on_demand ? std::numeric_limits<std::int64_t>::max()
                          : skip_budget(order_, options)),
        tickets_(least_in_flight(plan_), options.in_flight, options.in_flight_bytes),
        on_demand_(on_demand),
        wake_(std::move(wake)),
        arena_(options.threads, /*reserved_for_masters=*/0) {
    arena_.execute([this] { compile(); });  // a graph runs in the arena where it is made
    issue(0);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    line_.stop();
    graph_->cancel();
    graph_->wait_for_all();
  }

  /// On demand: makes this group.
  void ask(std::int64_t number) {
    line_.ask(number);
    pump_->try_put(flow::continue_msg());
  }

  /// The next item, in order, or nothing after so long.
  ItemPtr take() { return taken(ready_.try_pop()); }
  ItemPtr wait() {
    const WaitClock waiting(wait_ns_);
    return taken(ready_.pop());
  }
  bool wait_for(std::chrono::milliseconds most) {
    const WaitClock waiting(wait_ns_);
    return ready_.wait_for(most);
  }

  /// What the consumer gets of an item that has a message. Its tickets go out again.
  Delivery<Message> hand_over(Item& item) {
    runner_.count(plan_.stages.size(), 0);
    issue(item.tickets);
    const auto progress = progress_at(item.cursor);
    return {std::move(item.message), std::move(item.cursor), item.group_epoch, progress,
            item.group};
  }

  void stop() { line_.stop(); }
  /// Tickets of an item that nobody sees, or that is a failure, go out again.
  void issue(std::int64_t returned) {
    auto tickets = tickets_.exchange(returned);
    while (tickets > 0) {
      if (auto item = line_.next()) {
        --tickets;
        runner_.arrive(0);
        maps_.front().try_put(std::move(item));
        continue;
      }
      tickets_.give_back(tickets);
      if (!line_.is_asked()) return;
      tickets = tickets_.exchange(0);  // somebody asked while these were in nobody's hands
    }
  }

  std::int64_t epoch_size() const { return order_.size(); }

  FlowReport report() const {
    FlowReport report;
    report.stages = runner_.report();
    report.wait_s = static_cast<double>(wait_ns_) * 1e-9;
    report.filtered = runner_.filtered() + line_.filtered() / options_.ranks;
    report.in_work = runner_.in_work();
    ledger_.report(report);
    return report;
  }

 private:
  /// Adds up the time while it lives.
  class WaitClock {
   public:
    explicit WaitClock(std::atomic<std::int64_t>& sum) : sum_(sum) {}
    ~WaitClock() { sum_ += std::chrono::nanoseconds(Clock::now() - start_).count(); }

   private:
    std::atomic<std::int64_t>& sum_;
    const Clock::time_point start_ = Clock::now();
  };

  ItemPtr taken(ItemPtr item) {
    if (item) runner_.leave(plan_.stages.size());
    return item;
  }

  void compile() {
    graph_.emplace();
    order_samples_.emplace(*graph_, by_number);
    order_groups_.emplace(*graph_, by_number);
    const auto group = static_cast<std::size_t>(
        std::ranges::find_if(plan_.stages, &Stage::is_group) - plan_.stages.begin());

    group_.emplace(*graph_, flow::serial,
                   [this, group](ItemPtr item, GroupNode::output_ports_type& out) {
                     take_into_group(group, std::move(item), std::get<0>(out));
                   });
    deliver_.emplace(*graph_, flow::serial, [this](ItemPtr item) { deliver(std::move(item)); });
    pump_.emplace(*graph_, flow::serial, [this](const flow::continue_msg&) { issue(0); });

    add_maps(0, group, *order_samples_);
    flow::make_edge(*order_samples_, *group_);
    add_maps(group + 1, plan_.stages.size(), *order_groups_);
    flow::make_edge(*order_groups_, *deliver_);
  }

  /// A chain of parallel nodes for the stages first .. last-1, in front of `sequencer`.
  void add_maps(std::size_t first, std::size_t last, SequencerNode& sequencer) {
    const bool behind_group = first > 0;
    flow::sender<ItemPtr>* before = behind_group ? &flow::output_port<0>(*group_) : nullptr;
    for (auto k = first; k < last; ++k) {
      auto& node = maps_.emplace_back(*graph_, flow::unlimited, [this, k](ItemPtr item) {
        runner_.run(k, *item, worker());
        if (item->message)
          tickets_.saw(plan_.stages[k].yields.bytes(item->message) /
                       static_cast<std::size_t>(item->samples));
        return item;
      });
      if (before) flow::make_edge(*before, node);
      before = &node;
    }
    flow::make_edge(*before, sequencer);
  }

  template <class Port>
  void take_into_group(std::size_t k, ItemPtr item, Port& out) {
    const bool declared = k < plan_.stages.size();
    const auto start = Clock::now();
    auto group = grouper_.take(std::move(item));
    if (declared) {
      runner_.leave(k);
      runner_.count(k, std::chrono::nanoseconds(Clock::now() - start).count());
    }
    if (!group) return;
    if (declared) runner_.arrive(k + 1);
    out.try_put(std::move(group));
  }

  /// In order: what the consumer must see goes to it; tickets of what it need not see go out again.
  void deliver(ItemPtr item) {
    const bool lost = !item->message && !item->failure && !item->end;
    if (lost && options_.partial == Partial::wrap) runner_.refill(*item);
    try {
      for (const auto& reason : item->skipped) ledger_.record(item->epoch, reason);
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
    issue(item->tickets);
  }

  double progress_at(const Cursor& cursor) const {
    return static_cast<double>(cursor.next - std::ssize(cursor.pending)) /
           static_cast<double>(order_.size());
  }

  const Plan plan_;
  const FlowOptions options_;
  const Order order_;
  SampleKeys keys_;  // of the line alone
  SourceLine line_;
  StageRunner runner_;
  Grouper grouper_;  // of the serial group node alone
  SkipLedger ledger_;
  Tickets tickets_;
  ReadyQueue ready_;
  std::atomic<std::int64_t> wait_ns_ = 0;
  const bool on_demand_;
  const WakeUp wake_;

  const std::optional<oneapi::tbb::global_control> worker_ = worker_if_none();
  oneapi::tbb::task_arena arena_;
  std::optional<flow::graph> graph_;
  std::list<MapNode> maps_;
  std::optional<SequencerNode> order_samples_, order_groups_;
  std::optional<GroupNode> group_;
  std::optional<DeliverNode> deliver_;
  std::optional<flow::function_node<flow::continue_msg>> pump_;  // issues what was asked for
};

/// Everything, in order.
class Flow final : public DataFlow<Message> {
 public:
  Flow(Plan plan, const FlowOptions& options) : engine_(std::move(plan), options, false) {}

  std::optional<Delivery<Message>> next() override {
    if (ended_) return std::nullopt;
    const auto item = engine_.wait();
    if (item->message) return engine_.hand_over(*item);
    ended_ = true;
    engine_.stop();
    // Moved out, so that no worker that still holds the item lets go of the exception too.
    if (item->failure) std::rethrow_exception(std::exchange(item->failure, nullptr));
    return std::nullopt;
  }

  bool is_ready(std::chrono::milliseconds most) override {
    return ended_ || engine_.wait_for(most);
  }
  std::int64_t epoch_size() const override { return engine_.epoch_size(); }
  FlowReport report() const override { return engine_.report(); }

 private:
  Engine engine_;
  bool ended_ = false;
};

/// What is asked for.
class FlowOnDemand final : public NumberedFlow<Message> {
 public:
  FlowOnDemand(Plan plan, const FlowOptions& options, WakeUp wake)
      : engine_(std::move(plan), options, true, std::move(wake)) {}

  void ask(std::int64_t number) override {
    if (number < 0) throw std::invalid_argument(fmt::format("there is no item {}", number));
    engine_.ask(number);
  }

  std::optional<Made<Message>> take() override {
    const auto item = engine_.take();
    if (!item) return std::nullopt;
    Made<Message> made{.number = item->group, .skipped = std::move(item->skipped)};
    if (item->message) {
      made.item = engine_.hand_over(*item);
    } else {
      made.failure = item->failure ? std::exchange(item->failure, nullptr) : nothing_of(*item);
      engine_.issue(item->tickets);
    }
    return made;
  }

  std::int64_t epoch_size() const override { return engine_.epoch_size(); }
  FlowReport report() const override { return engine_.report(); }

 private:
  static std::exception_ptr nothing_of(const Item& item) {
    const auto* why = item.end ? "is past the end of the flow" : "has no sample that can be used";
    return std::make_exception_ptr(Error(fmt::format("item {} {}", item.group, why)));
  }

  Engine engine_;
};

/// A cursor may come from a file or from another process.
void check_cursor(const Cursor& cursor) {
  const auto& pending = cursor.pending;
  const bool ascending =
      std::ranges::adjacent_find(pending, std::ranges::greater_equal()) == pending.end();
  const bool inside = pending.empty() || (pending.front() >= 0 && pending.back() < cursor.next);
  constexpr auto kFarthest = std::numeric_limits<std::int64_t>::max() / 2;
  if (cursor.next < 0 || cursor.next > kFarthest || !ascending || !inside)
    throw ConfigError(fmt::format(
        "a flow cannot start at position {} with {} before it that wait: no flow has given such a "
        "cursor",
        cursor.next, pending.size()));
}

/// The options with what they leave open filled in. Throws ConfigError for those that cannot work.
FlowOptions settled(const Plan& plan, FlowOptions options) {
  check(plan);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw ConfigError(
        fmt::format("rank {} of {} ranks: there is no such rank", options.rank, options.ranks));
  check_cursor(options.start);
  if (options.threads <= 0) options.threads = oneapi::tbb::info::default_concurrency();
  const auto least = least_in_flight(plan);
  if (options.in_flight == 0) options.in_flight = least + 2 * (options.threads + least);
  if (options.in_flight < least)
    throw ConfigError(fmt::format(
        "in_flight = {} would hang: a group of {} samples takes as many in flight, or more",
        options.in_flight, least));
  return options;
}

}  // namespace

std::int64_t least_in_flight(const Plan& plan) { return batch_of(plan); }

std::unique_ptr<DataFlow<Message>> start(Plan plan, const FlowOptions& options) {
  const auto how = settled(plan, options);
  return std::make_unique<Flow>(std::move(plan), how);
}

std::unique_ptr<NumberedFlow<Message>> start_numbered(Plan plan, const FlowOptions& options,
                                                      WakeUp wake) {
  const auto how = settled(plan, options);
  return std::make_unique<FlowOnDemand>(std::move(plan), how, std::move(wake));
}

}  // namespace millrace
