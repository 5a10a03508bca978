#include "millrace/engine/engine.h"

#include <fmt/format.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/engine/flow_graph.h"

namespace millrace {
namespace {

/// Everything, in order.
class Flow final : public DataFlow<Message> {
 public:
  Flow(Plan plan, const FlowOptions& options) : graph_(std::move(plan), options, false) {}

  std::optional<Delivery<Message>> next() override {
    if (ended_) return std::nullopt;
    const auto item = graph_.wait();
    if (item->message) return graph_.hand_over(*item);
    ended_ = true;
    graph_.stop();
    // Moved out, so that no worker that still holds the item lets go of the exception too.
    if (item->failure) std::rethrow_exception(std::exchange(item->failure, nullptr));
    return std::nullopt;
  }

  bool is_ready(std::chrono::milliseconds most) override { return ended_ || graph_.wait_for(most); }
  std::int64_t epoch_size() const override { return graph_.epoch_size(); }
  FlowReport report() const override { return graph_.report(); }

 private:
  FlowGraph graph_;
  bool ended_ = false;
};

/// What is asked for.
class FlowOnDemand final : public NumberedFlow<Message> {
 public:
  FlowOnDemand(Plan plan, const FlowOptions& options, WakeUp wake)
      : graph_(std::move(plan), options, true, std::move(wake)) {}

  void ask(std::int64_t number) override {
    if (number < 0) throw std::invalid_argument(fmt::format("there is no item {}", number));
    graph_.ask(number);
  }

  std::optional<Made<Message>> take() override {
    const auto item = graph_.take();
    if (!item) return std::nullopt;
    Made<Message> made{.number = item->group, .skipped = std::move(item->skipped)};
    if (item->message) {
      made.item = graph_.hand_over(*item);
    } else {
      made.failure = item->failure ? std::exchange(item->failure, nullptr) : nothing_of(*item);
      graph_.reissue(item->tickets);
    }
    return made;
  }

  std::int64_t epoch_size() const override { return graph_.epoch_size(); }
  FlowReport report() const override { return graph_.report(); }

 private:
  static std::exception_ptr nothing_of(const Item& item) {
    const auto* why = item.end ? "is past the end of the flow" : "has no sample that can be used";
    return std::make_exception_ptr(Error(fmt::format("item {} {}", item.group, why)));
  }

  FlowGraph graph_;
};

constexpr std::int64_t kMostRanks = 1 << 16;  // whose groups are planned in no time

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
  if (options.ranks < 1 || options.ranks > kMostRanks || options.rank < 0 ||
      options.rank >= options.ranks)
    throw ConfigError(fmt::format("rank {} of {} ranks: there is no such rank of 1 to {} ranks",
                                  options.rank, options.ranks, kMostRanks));
  check_cursor(options.start);
  if (options.threads <= 0) options.threads = oneapi::tbb::info::default_concurrency();
  const auto least = plan.batch();
  if (options.in_flight == 0) options.in_flight = least + 2 * (options.threads + least);
  if (options.in_flight < least)
    throw ConfigError(fmt::format(
        "in_flight = {} would hang: a group of {} samples takes as many in flight, or more",
        options.in_flight, least));
  return options;
}

}  // namespace

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
