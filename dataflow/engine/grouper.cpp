#include "millrace/dataflow/engine/grouper.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {

GroupPtr Grouper::take(SamplePtr sample) {
  lost_ = sample->message ? 0 : lost_ + 1;
  if (lost_ > most_lost_ && !sample->failure)
    sample->failure = std::make_exception_ptr(Error(fmt::format(
        "no sample passed for two epochs: {} samples in a row were filtered out or unusable",
        lost_ - 1)));
  members_.push_back(std::move(sample));
  if (!members_.back()->closes) return nullptr;

  auto whole = std::make_shared<GroupItem>();
  whole->number = number_++;
  whole->at = members_.front()->at;
  whole->group = members_.front()->group;
  whole->tickets = std::ssize(members_);
  std::vector<Message> messages;
  for (const auto& member : members_) {
    whole->bytes += member->bytes;
    if (member->message) {
      messages.push_back(std::move(member->message));
      whole->members.push_back(member->at);
    }
    std::ranges::move(member->skipped, std::back_inserter(whole->skipped));
    if (!whole->failure) whole->failure = std::move(member->failure);
  }
  members_.clear();
  if (messages.empty() || whole->failure) return whole;
  whole->message = stage_ ? stage_->join(std::move(messages)) : std::move(messages.front());
  return whole;
}

}  // namespace millrace
