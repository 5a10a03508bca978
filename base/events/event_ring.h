// The recent events of this process, in a ring buffer. Any thread adds events without a lock; any
// thread or signal handler may read them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace {

enum class EventKind : std::uint8_t {
  stage,  // a stage of a data flow processes a sample; the number is the sample's
  file,   // a read from a disk or over the network
  batch,  // the training thread takes a batch; the wait for it is a `data` event
  data,
  // Communication with the other ranks; the n-th event of a name has the same number on all ranks.
  exchange,
  step,
  callback,
  checkpoint,
  evaluation,  // evaluation of one batch
  other,       // start and end of a training
};

/// Returns "stage" and so on.
std::string_view name_of(EventKind kind);

/// One event as plain bytes, so that a signal handler may copy and print it.
struct EventRecord {
  std::int64_t start_ns = 0;      // steady clock
  std::int64_t duration_ns = -1;  // below 0 = still running
  std::int64_t number = -1;       // below 0 = none
  std::int64_t bytes = 0;
  std::uint32_t thread = 0;  // thread id of the system
  EventKind kind = EventKind::other;
  std::array<char, 43> name{};  // such as "decode"; truncated to fit and ends with 0, like `detail`
  std::array<char, 112> detail{};  // such as "/data/val2017/000000000139.jpg"
};
static_assert(sizeof(EventRecord) == 192);

/// The last completed events and the events still running. Sample and file events are frequent and
/// have their own ring, so that they do not evict other events.
class EventRing {
 public:
  static constexpr std::size_t kKept = 1000;  // completed events in each of the two rings
  // Maximum number of running events; further events are recorded only when they end.
  static constexpr std::size_t kMostOpen = 256;

  /// Returns the ring of this process.
  static EventRing& own();

  /// Returns a slot for a running event; kMostOpen if all slots are taken.
  std::size_t open(const EventRecord& event);
  /// Releases the slot.
  void close(std::size_t place);
  /// Adds a completed event.
  void add(const EventRecord& event);

  /// Calls `see` for each completed event, the oldest of each ring first, then for each running
  /// event. Takes no lock and allocates no memory. Skips an event that is being written at this
  /// moment.
  template <class See>
  void each(See&& see) const {
    EventRecord event;
    for (const auto& ring : rings_) {
      const auto end = ring.next.load(std::memory_order_acquire);
      for (auto turn = end < kKept ? 0 : end - kKept; turn < end; ++turn)
        if (ring.slots[turn % kKept].read(event)) see(event);
    }
    for (const auto& [is_taken, slot] : open_)
      if (is_taken.load(std::memory_order_acquire) && slot.read(event)) see(event);
  }

 private:
  /// A record with a sequence count that is odd while the record is written.
  class Slot {
   public:
    /// Writes the event, unless a delayed thread still writes an older one or a newer one is
    /// already stored. Returns whether it was written.
    bool write(const EventRecord& event, std::uint64_t turn);
    bool read(EventRecord& event) const;

   private:
    static constexpr std::size_t kWords = sizeof(EventRecord) / sizeof(std::uint64_t);
    using Words = std::array<std::uint64_t, kWords>;
    std::atomic<std::uint64_t> count_ = 0;
    std::array<std::atomic<std::uint64_t>, kWords> words_{};
  };
  struct Ring {
    alignas(64) std::atomic<std::uint64_t> next = 0;
    std::array<Slot, kKept> slots;
  };
  struct alignas(64) Open {
    std::atomic<bool> is_taken = false;
    Slot slot;
  };

  std::array<Ring, 2> rings_;
  std::array<Open, kMostOpen> open_;
  std::atomic<std::uint64_t> opened_ = 0;
};

/// Hooks for profilers, called when an event begins and ends. `end` receives the value that `begin`
/// returned.
struct EventWatcher {
  std::uint64_t (*begin)(const EventRecord&) = nullptr;
  void (*end)(std::uint64_t) = nullptr;
};
/// Sets the watcher and replaces the previous one; nullptr = none. The watcher must live until the
/// process ends.
void watch_events(const EventWatcher* watcher);

/// Records an event of this process from construction to destruction. Costs about 0.3 microseconds.
/// May be destroyed on another thread. Truncates long texts: the name of a file event and the
/// detail of a file or stage event keep their end, all other texts their beginning.
class Event {
 public:
  explicit Event(EventKind kind, std::string_view name, std::string_view detail = {},
                 std::int64_t number = -1);
  ~Event();
  Event(const Event&) = delete;

  void set_bytes(std::int64_t bytes) { event_.bytes = bytes; }

 private:
  EventRecord event_;
  std::size_t place_;
  const EventWatcher* watcher_;
  std::uint64_t watched_ = 0;
};

}  // namespace millrace
