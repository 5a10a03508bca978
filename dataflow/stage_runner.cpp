#include "dataflow/stage_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/errors.h"

namespace millrace {
namespace {

constexpr std::int64_t kReplacementsTried = 100;

std::string in_context(const Stage& stage, std::int64_t epoch, std::int64_t index,
                       const char* why) {
  return fmt::format("epoch {}, sample {}, stage '{}': {}", epoch, index, stage.name, why);
}

}  // namespace

StageRunner::StageRunner(const std::vector<Stage>& stages, const Order& order,
                         const FlowOptions& options)
    : stages_(stages),
      order_(order),
      seed_(options.seed),
      on_error_(options.on_error),
      group_(static_cast<std::size_t>(std::ranges::find_if(stages, &Stage::is_group) -
                                      stages.begin())),
      counters_(stages.size() + 1) {}

void StageRunner::run(std::size_t k, Item& item) {
  leave(k);
  if (item.message) {
    const auto start = std::chrono::steady_clock::now();
    try {
      item.message = apply(k, std::move(item.message), item, item.index);
    } catch (const DataError& error) {
      leave_out(k, item, error);
    } catch (...) {
      item.message = {};
      item.failure = std::current_exception();
    }
    count(k, std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  }
  arrive(k + 1);
}

Message StageRunner::apply(std::size_t k, Message message, const Item& item,
                           std::int64_t index) const {
  Rng rng{seed_, static_cast<std::uint64_t>(item.epoch), static_cast<std::uint64_t>(index), k};
  return std::get<Map>(stages_[k].work)(std::move(message), rng);
}

void StageRunner::leave_out(std::size_t k, Item& item, const DataError& error) const {
  item.message = {};
  const auto why = in_context(stages_[k], item.epoch, item.index, error.what());
  if (on_error_ == OnError::fail) {
    item.failure = std::make_exception_ptr(DataError(why));
    return;
  }
  // A fault behind the group stage costs the group: no sample could take the place of all its members.
  item.skipped.insert(item.skipped.end(), static_cast<std::size_t>(item.tickets), why);
  if (on_error_ == OnError::replace && k < group_) replace(k, item);
}

/// Puts the samples that follow in the order through stages 0 .. k until one comes out.
void StageRunner::replace(std::size_t k, Item& item) const {
  const auto tried = std::min(order_.size() - 1, kReplacementsTried);
  for (std::int64_t ahead = 1; ahead <= tried; ++ahead) {
    const auto index = order_.index(item.position, ahead);
    std::size_t stage = 0;
    try {
      auto message = Message::of(Index{index});
      for (; stage <= k; ++stage) message = apply(stage, std::move(message), item, index);
      item.message = std::move(message);
      item.index = index;
      return;
    } catch (const DataError& error) {
      item.skipped.push_back(in_context(stages_[stage], item.epoch, index, error.what()));
    } catch (...) {
      item.failure = std::current_exception();
      return;
    }
  }
}

void StageRunner::count(std::size_t k, std::int64_t busy_ns) {
  counters_[k].items.fetch_add(1, std::memory_order_relaxed);
  counters_[k].busy_ns.fetch_add(busy_ns, std::memory_order_relaxed);
}

std::vector<StageReport> StageRunner::report() const {
  std::vector<StageReport> report;
  for (std::size_t k = 0; k <= stages_.size(); ++k)
    report.push_back({k < stages_.size() ? stages_[k].name : "ready", counters_[k].items,
                      static_cast<double>(counters_[k].busy_ns) * 1e-9, counters_[k].waiting});
  return report;
}

}  // namespace millrace
