#include "millrace/base/events/event_ring.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "millrace/base/clock.h"

namespace millrace {
namespace {

// Shorter callbacks are not recorded: there are dozens per step, and they do not explain a hang.
constexpr std::int64_t kShortestCallbackNs = 20'000;

std::atomic<const EventWatcher*> the_watcher = nullptr;

std::int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

std::uint32_t this_thread() {
  thread_local const auto id = static_cast<std::uint32_t>(::gettid());
  return id;
}

/// Copies the part of the text that fits and a terminating 0. A ~ marks a truncated text.
template <std::size_t size>
void copy_text(std::string_view text, std::array<char, size>& to, bool keeps_end) {
  constexpr auto kMost = size - 1;
  if (text.size() <= kMost) {
    *std::ranges::copy(text, to.begin()).out = '\0';
    return;
  }
  const auto part = keeps_end ? text.substr(text.size() - kMost) : text.substr(0, kMost);
  std::ranges::copy(part, to.begin());
  to[keeps_end ? 0 : kMost - 1] = '~';
  to[kMost] = '\0';
}

bool is_of_data(EventKind kind) { return kind == EventKind::stage || kind == EventKind::file; }

}  // namespace

std::string_view name_of(EventKind kind) {
  constexpr std::array<std::string_view, 10> kNames = {
      "stage", "file",     "batch",      "data",       "exchange",
      "step",  "callback", "checkpoint", "evaluation", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

EventRing& EventRing::own() {
  static constinit EventRing ring;  // constinit, since the first call may be in a signal handler
  return ring;
}

// Release stores and acquire loads order the words and the count. A fence is not used because
// ThreadSanitizer does not support it.
bool EventRing::Slot::write(const EventRecord& event, std::uint64_t turn) {
  const auto writing = 2 * turn + 1;
  auto seen = count_.load(std::memory_order_relaxed);
  if (seen % 2 != 0 || seen > writing ||
      !count_.compare_exchange_strong(seen, writing, std::memory_order_acq_rel))
    return false;
  const auto words = std::bit_cast<Words>(event);
  for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
  count_.store(writing + 1, std::memory_order_release);
  return true;
}

bool EventRing::Slot::read(EventRecord& event) const {
  const auto before = count_.load(std::memory_order_acquire);
  if (before == 0 || before % 2 != 0) return false;
  Words words;
  for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
  if (count_.load(std::memory_order_relaxed) != before) return false;
  event = std::bit_cast<EventRecord>(words);
  return true;
}

std::size_t EventRing::open(const EventRecord& event) {
  // Usually free, and in this thread's cache.
  thread_local std::size_t last = this_thread() % kMostOpen;
  for (std::size_t tried = 0; tried < kMostOpen; ++tried) {
    const auto place = (last + tried) % kMostOpen;
    bool is_taken = false;
    if (open_[place].is_taken.load(std::memory_order_relaxed)) continue;
    if (!open_[place].is_taken.compare_exchange_strong(is_taken, true, std::memory_order_acq_rel))
      continue;
    open_[place].slot.write(event, opened_.fetch_add(1, std::memory_order_relaxed) + 1);
    last = place;
    return place;
  }
  return kMostOpen;
}

void EventRing::close(std::size_t place) {
  if (place < kMostOpen) open_[place].is_taken.store(false, std::memory_order_release);
}

void EventRing::add(const EventRecord& event) {
  auto& ring = rings_[is_of_data(event.kind) ? 0 : 1];
  const auto turn = ring.next.fetch_add(1, std::memory_order_acq_rel);
  ring.slots[turn % kKept].write(event, turn);
}

void watch_events(const EventWatcher* watcher) { the_watcher = watcher; }

Event::Event(EventKind kind, std::string_view name, std::string_view detail, std::int64_t number)
    : watcher_(the_watcher.load(std::memory_order_acquire)) {
  event_.kind = kind;
  event_.number = number;
  event_.thread = this_thread();
  copy_text(name, event_.name, kind == EventKind::file);
  copy_text(detail, event_.detail, is_of_data(kind));
  event_.start_ns = now_ns();
  place_ = EventRing::own().open(event_);
  if (watcher_) watched_ = watcher_->begin(event_);
}

Event::~Event() {
  if (watcher_) watcher_->end(watched_);
  event_.duration_ns = now_ns() - event_.start_ns;
  if (event_.kind != EventKind::callback || event_.duration_ns >= kShortestCallbackNs)
    EventRing::own().add(event_);
  EventRing::own().close(place_);
}

}  // namespace millrace
