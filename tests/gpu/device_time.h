// Time as a device sees it.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>

namespace millrace::testing {

/// The thread's current stream of a device.
c10::Stream stream_of(at::Device device);

/// A point in a stream of a device that has a time.
class TimedEvent {
 public:
  explicit TimedEvent(const c10::Stream& stream);

  /// Seconds from this point until `later`, which the host waits for.
  double until(TimedEvent& later);

 private:
  c10::Event event_;
};

/// Seconds that the device takes for what `work` queues on the current stream, after one run of it
/// that is not timed.
double device_seconds(at::Device device, const std::function<void()>& work);

/// The host waits for all that the current stream has queued.
void wait_for(at::Device device);

}  // namespace millrace::testing
