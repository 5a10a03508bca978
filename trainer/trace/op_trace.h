// Which operators ran when, as libtorch reports them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/trainer/trace/op_work.h"

namespace millrace {

struct OpSpan {
  std::string name;  // "aten::convolution"
  std::uint64_t thread = 0;
  Clock::time_point begin, end;
  OpWork work;  // if it is counted
};

/// Records every operator of every thread, backward passes included, while it lives. One at a time;
/// without one, nothing is recorded and no time spent.
///
/// On a device every operator is waited for, so that its time is the device's and not that of
/// queueing it: steps take longer meanwhile, since the host works when the device does not.
class OpTrace {
 public:
  /// `counts_work`: of each operator, which takes it a microsecond longer.
  explicit OpTrace(c10::Device device = c10::DeviceType::CPU, bool counts_work = false);
  OpTrace(const OpTrace&) = delete;
  ~OpTrace();

  /// The operators that have ended since the last call, in that order.
  std::vector<OpSpan> take();

  /// The number of the calling thread in spans.
  static std::uint64_t this_thread();

 private:
  std::uint64_t handle_;
};

}  // namespace millrace
