// A plan compiled into a running graph, with what counts, bounds and orders it. Internal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/feed.h"
#include "millrace/engine/grouper.h"
#include "millrace/engine/item.h"
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
class FlowGraph final : public Flow {
 public:
  /// Makes the groups that `feed` gives. `wake` (may be empty) is called for each item that becomes
  /// ready. REQUIRES: a plan and options that were checked, threads and in_flight settled.
  FlowGraph(Plan plan, const FlowOptions& options, std::unique_ptr<Feed> feed, WakeUp wake);
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
  template <class SomeItem>
  void run_stage(std::size_t k, SomeItem& item, std::size_t samples);
  GroupPtr take_into_group(std::size_t k, SamplePtr sample);
  void deliver(GroupPtr item);
  Delivery<Message> hand_over(GroupItem& item);
  void reissue(std::int64_t tickets);

  const Plan plan_;
  const FlowOptions options_;
  const std::unique_ptr<Feed> feed_;
  const WakeUp wake_;
  const Order order_;
  SampleKeys keys_;  // used by the line alone
  SourceLine line_;
  StageRunner runner_;
  Grouper grouper_;  // used by the serial group node alone
  SkipLedger ledger_;
  Tickets tickets_;
  ReadyQueue ready_;
  std::atomic<std::int64_t> wait_ns_ = 0;
  bool ended_ = false;            // the consumer has seen the end
  std::unique_ptr<Nodes> nodes_;  // the first to go
};

}  // namespace millrace
