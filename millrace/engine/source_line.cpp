#include "millrace/engine/source_line.h"

#include <algorithm>
#include <utility>

#include "millrace/engine/stage.h"

namespace millrace {

SourceLine::SourceLine(const Order& order, GroupPlan plan, Slice slice, Feed& feed)
    : order_(order), slice_(slice), feed_(feed), groups_(std::move(plan)) {}

SamplePtr SourceLine::next() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || (member_ == last_ && !open_next_group())) return nullptr;
  auto item = std::make_shared<SampleItem>();
  item->number = number_++;
  item->group = group_;
  item->failure = group_->failure;
  if (group_->positions.empty()) {
    feed_.end();
  } else {
    const auto position = group_->positions[member_++];
    item->at = {position, order_.epoch(position), order_.turn(position)};
    item->message = Message::of(Index{item->at.turn.sample});
  }
  item->closes = member_ == last_;
  return item;
}

/// Goes on to the next group that has something for this rank, or is a failure or the end.
bool SourceLine::open_next_group() {
  do {
    const auto number = feed_.next();
    if (!number) return false;
    group_ = std::make_shared<const PlannedGroup>(groups_.at(*number, stopped_));
    filtered_ = groups_.filtered();
    const auto members = group_->positions.size();
    member_ = std::min(members, static_cast<std::size_t>(slice_.rank * slice_.size));
    last_ = std::min(members, static_cast<std::size_t>((slice_.rank + 1) * slice_.size));
  } while (member_ == last_ && !group_->positions.empty());
  return true;
}

}  // namespace millrace
