// Measures time on a device.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>

namespace millrace::testing {

/// Returns the thread's current stream of a device.
c10::Stream stream_of(at::Device device);

/// A timed event on a device stream.
class TimedEvent {
 public:
  explicit TimedEvent(const c10::Stream& stream);

  /// Waits for `later` and returns the seconds between the events.
  double until(TimedEvent& later);

 private:
  c10::Event event_;
};

/// Returns the seconds that the device takes for the work that `work` queues on the current stream,
/// after one untimed run.
double device_seconds(at::Device device, const std::function<void()>& work);

/// Waits on the host for all work queued on the current stream.
void wait_for(at::Device device);

}  // namespace millrace::testing
