#include "millrace/engine/plan.h"

#include <fmt/format.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/engine/flow_graph.h"

namespace millrace {
namespace {

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

std::unique_ptr<Flow> start(Plan plan, const MessageType& yields, const FlowOptions& options,
                            std::unique_ptr<Feed> feed, WakeUp wake) {
  check_yields(plan, yields);
  const auto how = settled(plan, options);
  return std::make_unique<FlowGraph>(std::move(plan), how, std::move(feed), std::move(wake));
}

}  // namespace

std::unique_ptr<Flow> start_in_order(Plan plan, const MessageType& yields,
                                     const FlowOptions& options) {
  return start(std::move(plan), yields, options, std::make_unique<FeedInOrder>(), {});
}

std::unique_ptr<Flow> start_by_number(Plan plan, const MessageType& yields,
                                      const FlowOptions& options, WakeUp wake) {
  return start(std::move(plan), yields, options, std::make_unique<FeedByNumber>(), std::move(wake));
}

}  // namespace millrace
