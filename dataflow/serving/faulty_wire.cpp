#include "millrace/dataflow/serving/faulty_wire.h"

#include <algorithm>

#include "millrace/base/random.h"
#include "millrace/dataflow/serving/messages.h"

namespace millrace::serving {
namespace {

// Bytes of a message before its body; damage there could also be another program's greeting.
constexpr std::size_t kEnvelope = 26;

std::int64_t number_of(const Message& message) {
  if (const auto* ask = std::get_if<Ask>(&message)) return ask->numbers.at(0);
  if (const auto* head = std::get_if<BatchHead>(&message)) return head->number;
  if (const auto* failure = std::get_if<Failure>(&message)) return failure->number;
  return 0;
}

/// A message of its own: libzmq's copies share their bytes.
Frames copy_of(const Frames& frames) {
  Frames copy;
  for (const auto& frame : frames) copy.emplace_back(frame.data(), frame.size());
  return copy;
}

void damage(Frames& frames, Rng& rng) {
  auto& frame = frames[rng.below(frames.size())];
  const auto before = &frame == &frames.front() ? std::min(kEnvelope, frame.size() - 1) : 0;
  if (frame.size() > before)
    static_cast<std::uint8_t*>(frame.data())[before + rng.below(frame.size() - before)] ^= 0x10;
}

}  // namespace

FaultyWire::FaultyWire(const InjectedFaults& faults, std::int64_t rank, std::int64_t link)
    : faults_(faults),
      rank_(static_cast<std::uint64_t>(rank)),
      link_(static_cast<std::uint64_t>(link)) {}

void FaultyWire::enter(Way way, Frames frames, Clock::time_point now) {
  const auto& faults = faults_.server;
  const auto message = decode(frames.front().to_string_view(), "message");
  const std::array<std::int64_t, 3> name = {
      way == Way::out, static_cast<std::int64_t>(message.index()), number_of(message)};
  Rng rng{faults_.seed,
          rank_,
          link_,
          static_cast<std::uint64_t>(name[0]),
          static_cast<std::uint64_t>(name[1]),
          static_cast<std::uint64_t>(name[2]),
          seen_[name]++};
  const bool is_dropped = rng.chance(faults.drop), is_damaged = rng.chance(faults.corrupt),
             is_doubled = rng.chance(faults.duplicate), is_delayed = rng.chance(faults.delay);
  if (is_dropped) return;
  if (is_damaged) {
    frames = copy_of(frames);
    damage(frames, rng);
  }
  auto until = now;
  if (is_delayed)
    until +=
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(faults.delay_s));
  auto& all = travelling_[static_cast<std::size_t>(way)];
  if (is_doubled) all.push_back({until, copy_of(frames)});
  all.push_back({until, std::move(frames)});
}

std::optional<Frames> FaultyWire::leave(Way way, Clock::time_point now) {
  auto& all = travelling_[static_cast<std::size_t>(way)];
  const auto next =
      std::ranges::find_if(all, [now](const auto& message) { return message.until <= now; });
  if (next == all.end()) return std::nullopt;
  auto frames = std::move(next->frames);
  all.erase(next);
  return frames;
}

void FaultyWire::clear() {
  for (auto& all : travelling_) all.clear();
}

}  // namespace millrace::serving
