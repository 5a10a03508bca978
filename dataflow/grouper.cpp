#include "dataflow/grouper.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/errors.h"
#include "dataflow/source_line.h"

namespace millrace {

Grouper::Grouper(const Group* stage, const FlowOptions& options, std::int64_t most_lost)
    : stage_(stage),
      partial_(options.partial),
      ranks_(options.ranks),
      most_lost_(most_lost),
      groups_(stage ? stage->groups : 0),
      next_(align(options.start.next, options.rank, options.ranks)) {}

std::vector<ItemPtr> Grouper::take(ItemPtr item) {
  std::vector<ItemPtr> out;
  const bool new_epoch = std::exchange(epoch_, item->epoch) != item->epoch;
  if (item->end || (new_epoch && partial_ == Partial::keep)) close_all_groups(out);
  if (!item->end) next_ = std::max(next_, item->position + ranks_);

  lost_ = item->message ? 0 : lost_ + 1;
  if (lost_ > most_lost_ && !item->failure)
    item->failure = std::make_exception_ptr(
        Error(fmt::format("nothing has come through for two epochs: {} samples in a row were "
                          "filtered out or could not be used",
                          lost_ - 1)));
  if (!stage_ || !item->message) {
    give(std::move(item), out);
    return out;
  }
  std::size_t key = 0;
  try {
    key = stage_->key(item->message);
    if (key >= groups_.size())
      throw std::out_of_range(
          fmt::format("the key of a group stage is {}, but it has {} groups", key, groups_.size()));
  } catch (...) {
    item->message = {};
    item->failure = std::current_exception();
    give(std::move(item), out);
    return out;
  }
  auto& members = groups_[key];
  members.push_back(std::move(item));
  if (members.size() == stage_->size) close_group(members, out);
  return out;
}

void Grouper::close_all_groups(std::vector<ItemPtr>& out) {
  for (auto& members : groups_)
    if (!members.empty()) close_group(members, out);
}

void Grouper::close_group(std::vector<ItemPtr>& members, std::vector<ItemPtr>& out) {
  auto whole = std::make_shared<Item>();
  whole->position = members.front()->position;
  whole->epoch = members.front()->epoch;
  whole->turn = members.front()->turn;
  whole->tickets = static_cast<std::int64_t>(members.size());
  std::vector<Message> messages;
  messages.reserve(members.size());
  for (auto& member : members) {
    messages.push_back(std::move(member->message));
    std::ranges::move(member->skipped, std::back_inserter(whole->skipped));
  }
  whole->message = stage_->join(std::move(messages));
  members.clear();
  give(std::move(whole), out);
}

void Grouper::give(ItemPtr item, std::vector<ItemPtr>& out) {
  item->number = number_++;
  item->cursor.next = next_;
  for (const auto& members : groups_)
    for (const auto& member : members) item->cursor.pending.push_back(member->position);
  std::ranges::sort(item->cursor.pending);
  out.push_back(std::move(item));
}

}  // namespace millrace
