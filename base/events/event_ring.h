// What this process has done lately: a ring of events that any thread adds to without a lock, and
// that any thread or signal handler may read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace millrace {

enum class EventKind : std::uint8_t {
  stage,  // of a flow of data; its number is the sample's
  file,   // read from a disk or over a network
  batch,  // taken by the training thread, which waits for it in `data`
  data,
  exchange,  // with the other ranks; the n-th of its name has the same number on all of them
  step,
  callback,
  checkpoint,
  evaluation,  // a batch of one
  other,       // the start and the end of a training
};

/// "stage"
std::string_view name_of(EventKind kind);

/// Plain bytes, so that a signal handler may copy and print it.
struct EventRecord {
  std::int64_t start_ns = 0;      // of the steady clock
  std::int64_t duration_ns = -1;  // below 0: it goes on
  std::int64_t number = -1;       // below 0: none
  std::int64_t bytes = 0;
  std::uint32_t thread = 0;  // as the system numbers them
  EventKind kind = EventKind::other;
  std::array<char, 43> name{};     // "decode"; cut to fit, and ends with 0, as does
  std::array<char, 112> detail{};  // "/data/val2017/000000000139.jpg"
};
static_assert(sizeof(EventRecord) == 192);

/// The last events that have ended, and those that go on. Names of samples and files are many: they
/// have a ring of their own, so that they push out nothing else.
class EventRing {
 public:
  static constexpr std::size_t kKept = 1000;     // in each of the two rings
  static constexpr std::size_t kMostOpen = 256;  // at once; those beyond are seen once they end

  /// Of this process.
  static EventRing& own();

  /// A place for an event that goes on; kMostOpen: there is none.
  std::size_t open(const EventRecord& event);
  /// Gives the place back.
  void close(std::size_t place);
  /// Adds one that has ended.
  void add(const EventRecord& event);

  /// Gets what has ended, the oldest of each ring first, then what goes on. Takes no lock and no
  /// memory. An event that is written at this moment is left out.
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
  /// A record with a count that is odd while it is written.
  class Slot {
   public:
    /// Writes unless a thread that was held up still writes an older one, or a newer one is there.
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

/// Sees events as they begin and end, for profilers; what `begin` returns, `end` gets.
struct EventWatcher {
  std::uint64_t (*begin)(const EventRecord&) = nullptr;
  void (*end)(std::uint64_t) = nullptr;
};
/// From now on, in the place of any before; nullptr: none. It must live as long as the process.
void watch_events(const EventWatcher* watcher);

/// An event of this process, from here to its end. Costs about 0.3 microseconds. It may end on
/// another thread. Where a name or detail is too long, the end of a file's and the beginning of any
/// other is kept.
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
