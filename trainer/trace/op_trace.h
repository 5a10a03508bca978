// Records the operators that run, as reported by libtorch.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/trainer/trace/op_work.h"

namespace millrace {

struct OpSpan {
  std::string name;  // name of the operator, e.g. "aten::convolution"
  std::uint64_t thread = 0;
  Clock::time_point begin, end;
  OpWork work;  // work of the operator; 0 unless counted
};

/// Records every operator on every thread, including backward passes, during its lifetime. Only one
/// object may exist at a time. Without one, there is no recording and no cost.
///
/// On a device, every operator is waited for, so that its time is that of the device and not that
/// of queueing. Steps take longer meanwhile, since host and device do not work concurrently.
class OpTrace {
 public:
  /// `counts_work`: counts the work of each operator, which costs a microsecond per operator.
  explicit OpTrace(c10::Device device = c10::DeviceType::CPU, bool counts_work = false);
  OpTrace(const OpTrace&) = delete;
  ~OpTrace();

  /// Returns the operators that have ended since the last call, in that order.
  std::vector<OpSpan> take();

  /// Returns the number of the calling thread in spans.
  static std::uint64_t this_thread();

 private:
  std::uint64_t handle_;
};

}  // namespace millrace
