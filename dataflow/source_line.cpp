#include "dataflow/source_line.h"

#include <limits>

#include "dataflow/stage.h"

namespace millrace {

SourceLine::SourceLine(const Order& order, const FlowOptions& options)
    : order_(order),
      stride_(options.ranks),
      past_(options.epochs > 0 ? options.epochs * order.size()
                               : std::numeric_limits<std::int64_t>::max()),
      here_(options.start) {
  here_.next = align(here_.next, options.rank, options.ranks);
}

ItemPtr SourceLine::next() {
  const std::lock_guard lock(mutex_);
  if (ended_) return nullptr;
  auto item = std::make_shared<Item>();
  item->number = number_++;
  if (reissued_ < here_.pending.size()) {
    item->position = here_.pending[reissued_++];
  } else {
    item->position = here_.next;
    here_.next += stride_;
  }
  item->epoch = order_.epoch(item->position);
  item->end = ended_ = item->position >= past_;
  if (!item->end) {
    item->turn = order_.turn(item->position);
    item->message = Message::of(Index{item->turn.sample});
  }
  return item;
}

void SourceLine::stop() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

}  // namespace millrace
