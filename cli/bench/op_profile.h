// Time of training steps by operator.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "millrace/trainer/trace/op_trace.h"

namespace millrace::cli {

/// Time spent in one operator or in all operators of one kind.
struct OpTime {
  std::string name;
  double seconds = 0;  // excluding the operators that it calls
  std::int64_t calls = 0;
  OpWork work;  // zero if not counted
};

/// Sums the time of operators that steps run, including backward passes, during this object's
/// lifetime; only one may exist at a time. On the CPU, operators of the calling thread count. On a
/// device, operators of all threads count, because libtorch runs backward passes on its own thread
/// while the caller waits.
class OpProfile {
 public:
  /// On a device, every operator is synchronized. Counting work takes time (OpTrace).
  OpProfile(c10::Device device, bool counts_work)
      : one_thread_(device.is_cpu()), trace_(device, counts_work) {}

  /// Adds the operators that ran since the last call. Must not be called inside an operator.
  void add_step();

  /// Returns times by operator name, slowest first.
  std::vector<OpTime> operators() const;
  /// Returns times by kind ("convolution", "matrix product", "ROIAlign", ...), slowest first.
  std::vector<OpTime> kinds() const;

 private:
  const bool one_thread_;
  OpTrace trace_;
  std::unordered_map<std::string, OpTime> times_;
};

}  // namespace millrace::cli
