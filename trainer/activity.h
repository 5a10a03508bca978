// What the training thread and its data are doing, and since when.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/base/recent_rate.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// One thread says what it does; any thread may ask.
class Activity {
 public:
  struct Now {
    // "start", "data", "exchange", "step", "checkpoint", "end", or "callback NAME"
    std::string where;
    std::string what;  // "waits for data", "callback 'evaluate' in trigger"
    Clock::time_point since;
    Clock::time_point moved;  // the last sign of life: begin() or moves()
  };

  /// How far the training is.
  struct Standing {
    std::int64_t step = 0, total_steps = 0;      // the total: an estimate until the last one
    double progress = 0;                         // in epochs
    std::int64_t images = 0;                     // of all processes
    double images_per_s = 0;                     // of this process, lately
    std::map<std::string, double> metrics = {};  // of the last step, and those last published
  };

  void begin(std::string where, std::string what) {
    const std::scoped_lock lock(mutex_);
    const auto at = Clock::now();
    now_ = {std::move(where), std::move(what), at, at};
    event_.reset();  // its end, before the next begins
    // An exchange records itself (MpiWorld), with those of other threads.
    if (now_.where != "exchange") event_.emplace(kind_of(now_.where), now_.where, now_.what);
    if (is_recorded_) record_.push_back(now_);
  }

  /// A sign of life during something long.
  void moves() {
    const std::scoped_lock lock(mutex_);
    now_.moved = Clock::now();
  }

  Now now() const {
    const std::scoped_lock lock(mutex_);
    return now_;
  }

  /// Records progress, without its rate and metrics. `images`: of this process since the last call.
  void stands(const Standing& now, std::int64_t images) {
    const std::scoped_lock lock(mutex_);
    auto metrics = std::move(standing_.metrics);
    standing_ = now;
    standing_.metrics = std::move(metrics);
    images_.add(static_cast<double>(images));
  }

  void set_metrics(std::map<std::string, double> metrics) {
    const std::scoped_lock lock(mutex_);
    standing_.metrics = std::move(metrics);
  }

  Standing standing() const {
    const std::scoped_lock lock(mutex_);
    auto standing = standing_;
    standing.images_per_s = images_.per_second();
    return standing;
  }

  /// Records what begins from now on.
  void start_recording() {
    const std::scoped_lock lock(mutex_);
    is_recorded_ = true;
  }

  /// What has begun since start_recording, in order.
  std::vector<Now> stop_recording() {
    const std::scoped_lock lock(mutex_);
    is_recorded_ = false;
    return std::exchange(record_, {});
  }

  /// Makes a flow of data visible while this lives.
  class Data {
   public:
    Data(Activity& activity, std::function<FlowReport()> report) : activity_(activity) {
      activity_.set_data(std::move(report));
    }
    Data(const Data&) = delete;
    ~Data() { activity_.set_data({}); }

   private:
    Activity& activity_;
  };

  /// The report of the training's flow of data; nothing without one.
  std::optional<FlowReport> data() const {
    const std::scoped_lock lock(data_mutex_);
    if (!data_) return std::nullopt;
    return data_();
  }

 private:
  static EventKind kind_of(std::string_view where) {
    if (where == "data") return EventKind::data;
    if (where == "step") return EventKind::step;
    if (where == "checkpoint") return EventKind::checkpoint;
    return where.starts_with("callback ") ? EventKind::callback : EventKind::other;
  }

  void set_data(std::function<FlowReport()> report) {
    const std::scoped_lock lock(data_mutex_);
    data_ = std::move(report);
  }

  mutable std::mutex mutex_;
  Now now_{"start", "starts", Clock::now(), Clock::now()};
  std::optional<Event> event_;  // what it does now
  Standing standing_;
  RecentRate images_;
  bool is_recorded_ = false;
  std::vector<Now> record_;
  mutable std::mutex data_mutex_;  // held during data(), so that the flow lives that long
  std::function<FlowReport()> data_;
};

}  // namespace millrace
