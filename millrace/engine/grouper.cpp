#include "millrace/engine/grouper.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {

ItemPtr Grouper::take(ItemPtr item) {
  lost_ = item->message ? 0 : lost_ + 1;
  if (lost_ > most_lost_ && !item->failure)
    item->failure = std::make_exception_ptr(
        Error(fmt::format("nothing has come through for two epochs: {} samples in a row were "
                          "filtered out or could not be used",
                          lost_ - 1)));
  members_.push_back(std::move(item));
  return members_.back()->closes ? close() : nullptr;
}

ItemPtr Grouper::close() {
  auto whole = std::move(members_.front());
  whole->number = number_++;
  whole->closes = true;
  std::vector<Message> messages;
  const auto collect = [&](Item& member) {
    if (!member.message) return;
    messages.push_back(std::move(member.message));
    whole->members.push_back({member.epoch, member.turn});
  };
  if (stage_) collect(*whole);
  for (std::size_t i = 1; i < members_.size(); ++i) {
    auto& member = *members_[i];
    collect(member);
    std::ranges::move(member.skipped, std::back_inserter(whole->skipped));
    if (!whole->failure) whole->failure = std::move(member.failure);
    whole->cursor = std::move(member.cursor);
  }
  whole->tickets = std::ssize(members_);
  members_.clear();
  if (stage_ && !messages.empty() && !whole->failure)
    whole->message = stage_->join(std::move(messages));
  return whole;
}

}  // namespace millrace
