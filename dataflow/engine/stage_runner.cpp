#include "millrace/dataflow/engine/stage_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/base/registry.h"

namespace millrace {
namespace {

constexpr std::int64_t kMaxTries = 100;  // tries for a replacement, or for a partner of a mix

std::int64_t nanoseconds(Clock::duration time) { return std::chrono::nanoseconds(time).count(); }

std::size_t place_of(const std::vector<Stage>& stages, bool (Stage::*kind)() const) {
  return static_cast<std::size_t>(std::ranges::find_if(stages, kind) - stages.begin());
}

}  // namespace

StageRunner::StageRunner(const Plan& plan, const Order& order, const FlowOptions& options)
    : plan_(plan),
      stages_(plan.stages),
      order_(order),
      seed_(options.seed),
      on_error_(options.on_error),
      share_{options.rank, options.ranks},
      group_size_(options.partial == Partial::wrap ? plan.batch() * options.ranks : 0),
      group_(place_of(stages_, &Stage::is_group)),
      counters_(stages_.size() + 1),
      // oneTBB makes an arena of one thread with two slots.
      slots_(static_cast<std::size_t>(std::max<std::int64_t>(options.threads, 2))) {
  if (const auto k = place_of(stages_, &Stage::is_cache); k < stages_.size()) {
    cache_ = &std::get<Cache>(stages_[k].work);
    after_cache_ = k + 1;
  }
  for (std::uint64_t name = 0; const auto& stage : stages_) {
    random_names_.push_back(name);
    if (!stage.changes_nothing()) ++name;
  }
}

void StageRunner::run(std::size_t k, Item& item, std::span<const Place> samples,
                      std::size_t worker) {
  leave(k);
  if (item.message) {
    const auto sample = item.at.turn.sample;
    const Event event(EventKind::stage, stages_[k].name, name_of(k, sample), sample);
    const auto start = Clock::now();
    auto& slot = slots_[worker];
    slot.stage.store(static_cast<std::int64_t>(k), std::memory_order_relaxed);
    slot.sample.store(sample, std::memory_order_relaxed);
    slot.began_ns.store(nanoseconds(start.time_since_epoch()), std::memory_order_release);
    try {
      if (auto found = k == 0 && cache_ ? cache_->find(item.at.turn.sample) : Message()) {
        item.message = std::move(found);
        item.first_stage = after_cache_;
      }
      if (k >= item.first_stage) {
        item.message =
            apply(k, std::move(item.message), item.at.epoch, item.at.turn, group_place(item));
        if (!item.message) filtered_.fetch_add(std::ssize(samples), std::memory_order_relaxed);
      }
    } catch (const DataError& error) {
      leave_out(k, item, samples, error.what());
    } catch (...) {
      item.message = {};
      item.failure = std::current_exception();
    }
    slot.began_ns.store(0, std::memory_order_release);
    count(k, nanoseconds(Clock::now() - start));
  }
  arrive(k + 1);
}

/// Returns the name of a sample if the source has one, else its number. In stage 0 only the number
/// is used, since the source itself may be stuck.
std::string StageRunner::name_of(std::size_t k, std::int64_t sample) const {
  if (plan_.about && plan_.about->name && k > 0) try {
      return plan_.about->name(sample);
    } catch (const std::exception&) {  // the sample cannot be read; use its number
    }
  return fmt::format("sample {}", sample);
}

/// Returns the place of an item's group. Full groups are numbered by the samples before them, since
/// a flow may start anywhere.
GroupPlace StageRunner::group_place(const Item& item) const {
  const auto& [number, positions, cursor, failure] = *item.group;
  const auto taken = cursor.next - std::ssize(cursor.pending);
  return {group_size_ > 0 ? taken / group_size_ - 1 : number, share_.rank, share_.ranks};
}

/// Runs one stage on one message. Prefixes what it throws with the place: a DataError remains a
/// DataError, anything else becomes an Error.
Message StageRunner::apply(std::size_t k, Message message, std::int64_t epoch, const Turn& turn,
                           const GroupPlace& group_place) const {
  const auto& stage = stages_[k];
  if (stage.until > 0 && epoch >= stage.until) return message;
  const auto rng_epoch = static_cast<std::uint64_t>(epoch);
  Rng rng{seed_, rng_epoch, turn.random_stream, random_names_[k]};
  const auto why = [&](const std::string& what) {
    return fmt::format("epoch {}, sample {}, stage '{}'{}: {}", epoch, turn.sample, stage.name,
                       of_plugin(stage.plugin), what);
  };
  try {
    if (const auto* map = std::get_if<Map>(&stage.work))
      return map->function(std::move(message), rng);
    if (const auto* watch = std::get_if<Watch>(&stage.work)) {
      watch->see(message, group_place);
      return message;
    }
    if (const auto* mix = std::get_if<Mix>(&stage.work)) {
      std::vector<Message> others(mix->partners(message, rng));
      Rng draw{seed_, rng_epoch, turn.random_stream, random_names_[k], /*partners*/ 1};
      for (auto& other : others) other = partner(stages_of_partners(k), epoch, draw);
      return mix->function(std::move(message), std::move(others), rng);
    }
    if (const auto* group = std::get_if<Group>(&stage.work)) {  // a group of one
      std::vector<Message> member;
      member.push_back(std::move(message));
      return group->join(std::move(member));
    }
    std::get<Cache>(stage.work).keep(turn.sample, message);
    return message;
  } catch (const DataError& error) {
    throw DataError(why(error.what()));
  } catch (...) {
    throw Error(why(what_is_thrown()));
  }
}

/// Returns the number of stages that make the partners of stage `k`.
std::size_t StageRunner::stages_of_partners(std::size_t k) const {
  const auto before = std::span(stages_).first(k);
  const auto maker =
      std::ranges::find(before, std::get<Mix>(stages_[k].work).made_by, &Stage::name);
  return maker == before.end() ? k : static_cast<std::size_t>(maker - before.begin()) + 1;
}

/// Returns a message that the first `stages` stages make of a sample drawn at random.
Message StageRunner::partner(std::size_t stages, std::int64_t epoch, Rng& rng) const {
  std::string why = "all were filtered out";
  for (std::int64_t tried = 0; tried < kMaxTries; ++tried) {
    const auto place =
        static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(order_.size())));
    try {
      if (auto message = make(stages, epoch, {order_.sample(place, epoch), rng()}, {}))
        return message;
    } catch (const DataError& error) {
      why = error.what();
    }
  }
  throw DataError(fmt::format("none of {} samples can be mixed in; the last: {}", kMaxTries, why));
}

/// Runs the first `stages` stages on a turn's sample; returns an empty message if one filters it
/// out.
Message StageRunner::make(std::size_t stages, std::int64_t epoch, const Turn& turn,
                          const GroupPlace& group) const {
  auto message = cache_ && after_cache_ <= stages ? cache_->find(turn.sample) : Message();
  auto k = message ? after_cache_ : 0;
  if (!message) message = Message::of(Index{turn.sample});
  for (; k < stages && message; ++k) message = apply(k, std::move(message), epoch, turn, group);
  return message;
}

void StageRunner::leave_out(std::size_t k, Item& item, std::span<const Place> samples,
                            const char* why) const {
  item.message = {};
  if (on_error_ == OnError::fail) {
    item.failure = std::make_exception_ptr(DataError(why));
    return;
  }
  // A fault after the group stage loses the whole group: no single sample could replace its
  // members.
  for (const auto& [position, epoch, turn] : samples)
    item.skipped.push_back({epoch, turn.random_stream, turn.sample, why});
  if (on_error_ == OnError::replace && k < group_) replace(k, item);
}

std::int64_t StageRunner::replacement_tries() const {
  return std::min(order_.size() - 1, kMaxTries);
}

/// Runs stages 0 .. k on the next samples of the order until one is usable.
void StageRunner::replace(std::size_t k, Item& item) const {
  for (std::int64_t ahead = 1; ahead <= replacement_tries(); ++ahead) {
    const auto turn = order_.turn(item.at.position, ahead);
    try {
      if (auto message = make(k + 1, item.at.epoch, turn, group_place(item))) {
        item.message = std::move(message);
        item.at.turn = turn;
        return;
      }
    } catch (const DataError& error) {
      item.skipped.push_back({item.at.epoch, turn.random_stream, turn.sample, error.what()});
    } catch (...) {
      item.failure = std::current_exception();
      return;
    }
  }
}

void StageRunner::refill(GroupItem& group) const {
  replace(stages_.size() - 1, group);
  if (!group.message && !group.failure)
    group.failure = std::make_exception_ptr(Error(fmt::format(
        "epoch {}, sample {}: it and the next {} in the order were filtered out or are unusable{}",
        group.at.epoch, group.at.turn.sample, replacement_tries(),
        group.skipped.empty() ? "" : "; the last: " + group.skipped.back().why)));
}

void StageRunner::count(std::size_t k, std::int64_t busy_ns) {
  counters_[k].items.fetch_add(1, std::memory_order_relaxed);
  counters_[k].busy_ns.fetch_add(busy_ns, std::memory_order_relaxed);
}

std::vector<StageReport> StageRunner::report() const {
  std::vector<StageReport> report;
  for (std::size_t k = 0; k <= stages_.size(); ++k)
    report.push_back({k < stages_.size() ? stages_[k].name : "ready", counters_[k].items,
                      static_cast<double>(counters_[k].busy_ns) * 1e-9, counters_[k].waiting});
  return report;
}

std::vector<StageWork> StageRunner::in_work() const {
  std::vector<StageWork> work;
  for (const auto& slot : slots_) {
    const auto began = slot.began_ns.load(std::memory_order_acquire);
    if (began == 0) continue;
    const auto k = static_cast<std::size_t>(slot.stage.load(std::memory_order_relaxed));
    const auto sample = slot.sample.load(std::memory_order_relaxed);
    work.push_back(
        {stages_[k].name, name_of(k, sample),
         static_cast<double>(nanoseconds(Clock::now().time_since_epoch()) - began) * 1e-9});
  }
  std::ranges::sort(work, std::greater<>(), &StageWork::seconds);
  return work;
}

}  // namespace millrace
