// A plan compiled into a running graph, with what counts, bounds and orders it. Internal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/flow_options.h"
#include "millrace/engine/grouper.h"
#include "millrace/engine/item.h"
#include "millrace/engine/numbered_flow.h"
#include "millrace/engine/order.h"
#include "millrace/engine/plan.h"
#include "millrace/engine/ready_queue.h"
#include "millrace/engine/sample_keys.h"
#include "millrace/engine/skip_ledger.h"
#include "millrace/engine/source_line.h"
#include "millrace/engine/stage_runner.h"
#include "millrace/engine/tickets.h"

namespace millrace {

/// One thread consumes; destroying it cancels what is in work and leaves no thread.
class FlowGraph {
 public:
  /// Makes all groups in their order, or on demand those that are asked for. `wake` (may be empty) is called for each
  /// item that becomes ready. REQUIRES: a plan and options that were checked, threads and in_flight settled.
  FlowGraph(Plan plan, const FlowOptions& options, bool on_demand, WakeUp wake = {});
  FlowGraph(const FlowGraph&) = delete;
  FlowGraph& operator=(const FlowGraph&) = delete;
  ~FlowGraph();

  /// On demand: makes this group.
  void ask(std::int64_t number);

  /// The next item, in order; `take` gives nullptr where none is ready.
  ItemPtr take();
  ItemPtr wait();
  bool wait_for(std::chrono::milliseconds most);

  /// What the consumer gets of an item that has a message. Its tickets go out again.
  Delivery<Message> hand_over(Item& item);
  /// Tickets of an item that is no delivery go out again, each with the next sample.
  void reissue(std::int64_t tickets);

  /// Nothing new is begun.
  void stop() { line_.stop(); }
  std::int64_t epoch_size() const { return order_.size(); }
  FlowReport report() const;

 private:
  struct Nodes;

  void issue(std::int64_t returned);
  ItemPtr run_stage(std::size_t k, ItemPtr item);
  ItemPtr take_into_group(std::size_t k, ItemPtr item);
  void deliver(ItemPtr item);
  ItemPtr taken(ItemPtr item);
  double progress_at(const Cursor& cursor) const;

  const Plan plan_;
  const FlowOptions options_;
  const bool on_demand_;
  const WakeUp wake_;
  const Order order_;
  SampleKeys keys_;  // of the line alone
  SourceLine line_;
  StageRunner runner_;
  Grouper grouper_;  // of the serial group node alone
  SkipLedger ledger_;
  Tickets tickets_;
  ReadyQueue ready_;
  std::atomic<std::int64_t> wait_ns_ = 0;
  std::unique_ptr<Nodes> nodes_;  // the first to go
};

}  // namespace millrace
