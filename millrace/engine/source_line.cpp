#include "millrace/engine/source_line.h"

#include <algorithm>
#include <utility>

#include "millrace/engine/stage.h"

namespace millrace {

SourceLine::SourceLine(const Order& order, GroupPlan plan, Slice slice, bool on_demand)
    : order_(order),
      slice_(slice),
      on_demand_(on_demand),
      plan_(plan),
      numbered_(std::move(plan)) {}

ItemPtr SourceLine::next() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || (member_ == last_ && !open_next_group())) return nullptr;
  auto item = std::make_shared<Item>();
  item->number = number_++;
  item->group = group_.number;
  item->failure = group_.failure;
  item->end = group_.positions.empty() && !group_.failure;
  if (group_.positions.empty()) {
    stopped_ = stopped_ || !on_demand_;
    item->closes = true;
    return item;
  }
  item->position = group_.positions[member_++];
  item->epoch = order_.epoch(item->position);
  item->turn = order_.turn(item->position);
  item->message = Message::of(Index{item->turn.sample});
  item->group_epoch = order_.epoch(group_.positions.front());
  item->closes = member_ == last_;
  if (item->closes) item->cursor = std::move(group_.cursor);
  return item;
}

/// Goes on to the next group that has something for this rank, or is a failure or the end.
bool SourceLine::open_next_group() {
  do {
    auto group = next_group();
    if (!group) return false;
    group_ = std::move(*group);
    filtered_ = on_demand_ ? numbered_.filtered() : plan_.filtered();
    const auto members = group_.positions.size();
    member_ = std::min(members, static_cast<std::size_t>(slice_.rank * slice_.size));
    last_ = std::min(members, static_cast<std::size_t>((slice_.rank + 1) * slice_.size));
  } while (member_ == last_ && !group_.positions.empty());
  return true;
}

std::optional<PlannedGroup> SourceLine::next_group() {
  if (!on_demand_) return plan_.next();
  std::int64_t number = 0;
  {
    const std::lock_guard lock(asked_mutex_);
    if (asked_.empty()) return std::nullopt;
    number = asked_.front();
    asked_.pop_front();
  }
  return numbered_.at(number, stopped_);
}

void SourceLine::ask(std::int64_t number) {
  const std::lock_guard lock(asked_mutex_);
  asked_.push_back(number);
}

}  // namespace millrace
