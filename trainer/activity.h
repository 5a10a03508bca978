// The current activity of the training thread, its progress, and the report of its data flow.
#pragma once

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

/// Holds what one thread is doing; that thread sets it and any thread may read it.
class Activity {
 public:
  struct Now {
    // Kind of activity: "start", "data", "exchange", "step", "checkpoint", "end", or "callback
    // NAME".
    std::string where;
    std::string what;  // text for logs, e.g. "waits for data" or "callback 'evaluate' in trigger"
    Clock::time_point since;
    Clock::time_point last_progress;  // time of the last call of begin() or report_progress()
  };

  /// Progress of the training.
  struct Progress {
    std::int64_t step = 0, total_steps = 0;  // total_steps is an estimate until the last step
    double epochs = 0;                       // epochs done
    std::int64_t images = 0;                 // images processed by all processes
    double images_per_s = 0;                 // recent rate of this process
    // Metrics of the last step, and the last published ones.
    std::map<std::string, double> metrics = {};
  };

  void begin(std::string where, std::string what) {
    const std::scoped_lock lock(mutex_);
    const auto at = Clock::now();
    now_ = {std::move(where), std::move(what), at, at};
    event_.reset();  // ends the previous event before the next begins
    // MpiWorld records exchanges as events, together with those of other threads.
    if (now_.where != "exchange") event_.emplace(kind_of(now_.where), now_.where, now_.what);
    if (is_recorded_) record_.push_back(now_);
  }

  /// Reports progress within a long activity, for the watchdog.
  void report_progress() {
    const std::scoped_lock lock(mutex_);
    now_.last_progress = Clock::now();
  }

  Now now() const {
    const std::scoped_lock lock(mutex_);
    return now_;
  }

  /// Records progress except images_per_s and metrics. `images`: number that this process has
  /// processed since the last call.
  void set_progress(const Progress& now, std::int64_t images) {
    const std::scoped_lock lock(mutex_);
    auto metrics = std::move(progress_.metrics);
    progress_ = now;
    progress_.metrics = std::move(metrics);
    images_.add(static_cast<double>(images));
  }

  void set_metrics(std::map<std::string, double> metrics) {
    const std::scoped_lock lock(mutex_);
    progress_.metrics = std::move(metrics);
  }

  Progress progress() const {
    const std::scoped_lock lock(mutex_);
    auto progress = progress_;
    progress.images_per_s = images_.per_second();
    return progress;
  }

  /// Keeps every activity that begins from now on, until stop_recording().
  void start_recording() {
    const std::scoped_lock lock(mutex_);
    is_recorded_ = true;
  }

  /// Returns the activities that have begun since start_recording(), in order.
  std::vector<Now> stop_recording() {
    const std::scoped_lock lock(mutex_);
    is_recorded_ = false;
    return std::exchange(record_, {});
  }

  /// Makes the report of a data flow available through data() while this object lives.
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

  /// Returns the report of the training's data flow; nullopt if no flow is registered.
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
  std::optional<Event> event_;  // the current activity
  Progress progress_;
  RecentRate images_;
  bool is_recorded_ = false;
  std::vector<Now> record_;
  mutable std::mutex data_mutex_;  // held during data(), so that the flow is not destroyed
  std::function<FlowReport()> data_;
};

}  // namespace millrace
