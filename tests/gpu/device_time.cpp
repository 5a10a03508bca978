#include "tests/gpu/device_time.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace millrace::testing {

c10::Stream stream_of(at::Device device) {
  return c10::impl::getDeviceGuardImpl(device.type())->getStream(device);
}

TimedEvent::TimedEvent(const c10::Stream& stream)
    : event_(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT) {
  event_.record(stream);
}

double TimedEvent::until(TimedEvent& later) {
  event_.synchronize();
  later.event_.synchronize();
  return event_.elapsedTime(later.event_) / 1e3;
}

double device_seconds(at::Device device, const std::function<void()>& work) {
  work();
  TimedEvent begin(stream_of(device));
  work();
  TimedEvent end(stream_of(device));
  return begin.until(end);
}

void wait_for(at::Device device) {
  c10::impl::getDeviceGuardImpl(device.type())->synchronizeStream(stream_of(device));
}

}  // namespace millrace::testing
