// One graph node a declared stage:
//
//   line -> map ... map -> sequencer -> group (serial) -> map ... map -> sequencer -> deliver -> ready
//
// Tickets bound what is in flight (see Tickets): an item is issued for each ticket that comes back,
// from the consumer that takes a batch or from `deliver` when a sample was left out. No body ever blocks.
#include "dataflow/engine.h"

#include <fmt/format.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <list>
#include <numeric>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "base/text.h"
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

const Group* group_of(const Plan& plan) {
  for (const auto& stage : plan.stages)
    if (stage.is_group()) return &std::get<Group>(stage.work);
  return nullptr;
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

class Engine final : public DataFlow<Message> {
 public:
  Engine(Plan plan, const FlowOptions& options)
      : plan_(std::move(plan)),
        options_(options),
        order_(plan_.size, plan_.repeats, options.seed, options.shuffle),
        line_(order_, options),
        runner_(plan_, order_, options),
        grouper_(group_of(plan_), options, two_epochs(order_, options)),
        ledger_(skip_budget(order_, options)),
        tickets_(least_in_flight(plan_), options.in_flight, options.in_flight_bytes),
        arena_(options.threads, /*reserved_for_masters=*/0) {
    arena_.execute([this] { compile(); });  // a graph runs in the arena where it is made
    issue(0);
  }

  ~Engine() override {
    line_.stop();
    graph_->cancel();
    graph_->wait_for_all();
  }

  std::optional<Delivery<Message>> next() override {
    if (ended_) return std::nullopt;
    const auto start = Clock::now();
    const auto item = ready_.pop();
    wait_ns_ += std::chrono::nanoseconds(Clock::now() - start).count();
    runner_.leave(plan_.stages.size());

    if (!item->message) {  // the end, or a failure that is one
      ended_ = true;
      line_.stop();
      // Moved out, so that no worker that still holds the item lets go of the exception too.
      if (item->failure) std::rethrow_exception(std::exchange(item->failure, nullptr));
      return std::nullopt;
    }
    runner_.count(plan_.stages.size(), 0);
    issue(item->tickets);
    const auto progress = progress_at(item->cursor);
    return Delivery<Message>{std::move(item->message), std::move(item->cursor), item->epoch,
                             progress};
  }

  bool is_ready(std::chrono::milliseconds most) override {
    if (ended_) return true;
    const auto start = Clock::now();
    const bool ready = ready_.wait_for(most);
    wait_ns_ += std::chrono::nanoseconds(Clock::now() - start).count();
    return ready;
  }

  std::int64_t epoch_size() const override { return order_.size(); }

  FlowReport report() const override {
    FlowReport report;
    report.stages = runner_.report();
    report.wait_s = static_cast<double>(wait_ns_) * 1e-9;
    report.filtered = runner_.filtered();
    report.in_work = runner_.in_work();
    ledger_.report(report);
    return report;
  }

 private:
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
                       static_cast<std::size_t>(item->tickets));
        return item;
      });
      if (before) flow::make_edge(*before, node);
      before = &node;
    }
    flow::make_edge(*before, sequencer);
  }

  /// Tickets that came back go out again, each with the next sample.
  void issue(std::int64_t returned) {
    for (auto tickets = tickets_.exchange(returned); tickets > 0; --tickets) {
      auto item = line_.next();
      if (!item) return;
      runner_.arrive(0);
      maps_.front().try_put(std::move(item));
    }
  }

  template <class Port>
  void take_into_group(std::size_t k, ItemPtr item, Port& out) {
    const bool declared = k < plan_.stages.size();
    const auto start = Clock::now();
    auto items = grouper_.take(std::move(item));
    if (declared) {
      runner_.leave(k);
      runner_.count(k, std::chrono::nanoseconds(Clock::now() - start).count());
    }
    for (auto& given : items) {
      if (declared) runner_.arrive(k + 1);
      out.try_put(std::move(given));
    }
  }

  /// In order: what the consumer must see goes to it; tickets of what it need not see go out again.
  void deliver(ItemPtr item) {
    try {
      for (const auto& reason : item->skipped) ledger_.record(item->epoch, reason);
    } catch (...) {
      item->message = {};
      if (!item->failure) item->failure = std::current_exception();
    }
    if (item->message || item->failure || item->end) return ready_.push(std::move(item));
    runner_.leave(plan_.stages.size());
    issue(item->tickets);
  }

  double progress_at(const Cursor& cursor) const {
    const auto waiting = static_cast<std::int64_t>(cursor.pending.size()) * options_.ranks;
    return static_cast<double>(cursor.next - options_.rank - waiting) /
           static_cast<double>(order_.size());
  }

  const Plan plan_;
  const FlowOptions options_;
  const Order order_;
  SourceLine line_;
  StageRunner runner_;
  Grouper grouper_;  // of the serial group node alone
  SkipLedger ledger_;
  Tickets tickets_;
  ReadyQueue ready_;
  std::atomic<std::int64_t> wait_ns_ = 0;
  bool ended_ = false;  // of the consumer

  const std::optional<oneapi::tbb::global_control> worker_ = worker_if_none();
  oneapi::tbb::task_arena arena_;
  std::optional<flow::graph> graph_;
  std::list<MapNode> maps_;
  std::optional<SequencerNode> order_samples_, order_groups_;
  std::optional<GroupNode> group_;
  std::optional<DeliverNode> deliver_;
};

bool draws(const Stage& stage) {
  const auto* map = std::get_if<Map>(&stage.work);
  return map ? map->random : std::holds_alternative<Mix>(stage.work);
}

void check_repeats(const Plan& plan) {
  if (plan.repeats.empty()) return;
  if (std::ssize(plan.repeats) != plan.size)
    throw ConfigError(
        fmt::format("a flow of {} samples is given {} repeats", plan.size, plan.repeats.size()));
  const auto bad = std::ranges::find_if_not(
      plan.repeats, [](double times) { return std::isfinite(times) && times >= 0; });
  if (bad != plan.repeats.end())
    throw ConfigError(
        fmt::format("sample {} cannot come {} times an epoch", bad - plan.repeats.begin(), *bad));
  if (std::reduce(plan.repeats.begin(), plan.repeats.end()) < 1)
    throw ConfigError("the repeats of all samples leave none for an epoch");
}

}  // namespace

void check(const Plan& plan) {
  if (plan.size <= 0) throw ConfigError("a flow needs at least one sample");
  if (plan.stages.empty() || plan.stages.front().is_group())
    throw ConfigError("a flow starts with a stage that reads samples");
  check_repeats(plan);
  auto present = MessageType::of<Index>();
  std::string from = "the source";
  bool grouped = false, cached = false;
  const Stage* random = nullptr;
  for (std::size_t k = 0; k < plan.stages.size(); ++k) {
    const auto& stage = plan.stages[k];
    if (!(stage.takes == present))
      throw ConfigError(fmt::format("stage {} '{}' takes {}, {} yields {}", k + 1, stage.name,
                                    stage.takes.text(), from, present.text()));
    if (stage.is_group() && std::exchange(grouped, true))
      throw ConfigError(fmt::format("stage {} '{}' is a second stage that groups; one is the most",
                                    k + 1, stage.name));
    if (stage.is_cache()) {
      if (std::exchange(cached, true) || grouped)
        throw ConfigError(
            fmt::format("stage {} '{}': a flow has one cache, in front of the stage that groups",
                        k + 1, stage.name));
      if (random)
        throw ConfigError(
            fmt::format("stage {} '{}' would keep what '{}' has drawn at random: every epoch would "
                        "see the same; put it in "
                        "front of '{}'",
                        k + 1, stage.name, random->name, random->name));
    }
    if (!random && draws(stage)) random = &stage;
    present = stage.yields;
    from = fmt::format("'{}'", stage.name);
  }
}

std::int64_t least_in_flight(const Plan& plan) {
  const auto* group = group_of(plan);
  return group ? static_cast<std::int64_t>(group->groups * (group->size - 1) + 1) : 1;
}

std::unique_ptr<DataFlow<Message>> start(Plan plan, const FlowOptions& options) {
  check(plan);
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks)
    throw ConfigError(
        fmt::format("rank {} of {} ranks: there is no such rank", options.rank, options.ranks));

  auto settled = options;
  if (settled.threads <= 0) settled.threads = oneapi::tbb::info::default_concurrency();
  const auto least = least_in_flight(plan);
  const auto* group = group_of(plan);
  const auto batch = group ? static_cast<std::int64_t>(group->size) : 1;
  if (settled.in_flight == 0) settled.in_flight = least + 2 * (settled.threads + batch);
  if (settled.in_flight < least)
    throw ConfigError(fmt::format(
        "in_flight = {} could hang: {} of {} samples may all wait half-filled, so it takes {} or "
        "more",
        settled.in_flight, counted(static_cast<long long>(group->groups), "group"), batch, least));

  return std::make_unique<Engine>(std::move(plan), settled);
}

}  // namespace millrace
