// Records the operators that run, as reported by libtorch, and their minimum work.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/clock.h"

namespace millrace {

/// The minimum work of an operator: its arithmetic, and the memory that it reads and writes.
struct OpWork {
  // Operations of convolutions and matrix products (a multiply-add counts as two); 0 for others.
  double flops = 0;
  double bytes = 0;  // bytes of all input and output tensors, each counted once

  OpWork& operator+=(const OpWork& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

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
