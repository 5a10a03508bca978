#include "millrace/dataflow/engine/source_line.h"

#include <algorithm>
#include <utility>

#include "millrace/dataflow/engine/stage.h"

namespace millrace {

SourceLine::SourceLine(const Order& order, GroupPlan plan, std::int64_t rank, std::int64_t size,
                       bool by_number)
    : order_(order), rank_(rank), size_(size), by_number_(by_number), groups_(std::move(plan)) {}

void SourceLine::ask(std::int64_t number) {
  const std::lock_guard lock(asked_mutex_);
  asked_.push_back(number);
}

SamplePtr SourceLine::next() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || (member_ == last_ && !open_next_group())) return nullptr;
  auto item = std::make_shared<SampleItem>();
  item->number = number_++;
  item->group = group_;
  item->failure = group_->failure;
  if (group_->positions.empty()) {
    ended_ = true;
  } else {
    const auto position = group_->positions[member_++];
    item->at = {position, order_.epoch(position), order_.turn(position)};
    item->message = Message::of(Index{item->at.turn.sample});
  }
  item->closes = member_ == last_;
  return item;
}

/// Advances to the next group that has members for this rank, or is a failure or the end.
bool SourceLine::open_next_group() {
  do {
    const auto number = next_number();
    if (!number) return false;
    group_ = std::make_shared<const PlannedGroup>(groups_.at(*number, stopped_));
    filtered_ = groups_.filtered();
    const auto members = group_->positions.size();
    member_ = std::min(members, static_cast<std::size_t>(rank_ * size_));
    last_ = std::min(members, static_cast<std::size_t>((rank_ + 1) * size_));
  } while (member_ == last_ && !group_->positions.empty());
  return true;
}

std::optional<std::int64_t> SourceLine::next_number() {
  if (!by_number_) return ended_ ? std::nullopt : std::optional(next_group_++);
  const std::lock_guard lock(asked_mutex_);
  if (asked_.empty()) return std::nullopt;
  const auto number = asked_.front();
  asked_.pop_front();
  return number;
}

}  // namespace millrace
