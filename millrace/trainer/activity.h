// What the training thread and its data are doing, and since when.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/engine/dataflow.h"

namespace millrace {

/// One thread says what it does; any thread may ask.
class Activity {
 public:
  struct Now {
    std::string what;  // "waits for data", "callback 'evaluate' in trigger"
    Clock::time_point since;
    Clock::time_point moved;  // the last sign of life: begin() or moves()
  };

  void begin(std::string what) {
    const std::scoped_lock lock(mutex_);
    const auto at = Clock::now();
    now_ = {std::move(what), at, at};
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
  void set_data(std::function<FlowReport()> report) {
    const std::scoped_lock lock(data_mutex_);
    data_ = std::move(report);
  }

  mutable std::mutex mutex_;
  Now now_{"starts", Clock::now(), Clock::now()};
  bool is_recorded_ = false;
  std::vector<Now> record_;
  mutable std::mutex data_mutex_;  // held during data(), so that the flow lives that long
  std::function<FlowReport()> data_;
};

}  // namespace millrace
