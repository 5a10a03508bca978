// How the time of steps divides over operators.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "millrace/trainer/trace/op_trace.h"

namespace millrace::cli {

/// Time spent in one operator, or in all of one kind.
struct OpTime {
  std::string name;
  double seconds = 0;  // without the operators that it called
  std::int64_t calls = 0;
  OpWork work;  // if it is counted
};

/// Sums up the operators that steps run, their backward passes included, while this exists; one at
/// a time. On the CPU they are those of the calling thread. On a device libtorch runs backward
/// passes on a thread of its own while the caller waits: those of all threads count.
class OpProfile {
 public:
  /// On a device every operator is waited for, and counting work takes time (OpTrace).
  OpProfile(c10::Device device, bool counts_work)
      : one_thread_(device.is_cpu()), trace_(device, counts_work) {}

  /// Adds what has run since the last call. Call it outside operators.
  void add_step();

  /// By name, the slowest first.
  std::vector<OpTime> operators() const;
  /// By kind ("convolution", "matrix product", "ROIAlign" ...), the slowest first.
  std::vector<OpTime> kinds() const;

 private:
  const bool one_thread_;
  OpTrace trace_;
  std::unordered_map<std::string, OpTime> times_;
};

}  // namespace millrace::cli
