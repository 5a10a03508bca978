// How the time of a thread divides over operators.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "millrace/trainer/op_trace.h"

namespace millrace::cli {

/// Time spent in one operator, or in all of one kind.
struct OpTime {
  std::string name;
  double seconds = 0;  // without the operators that it called
  std::int64_t calls = 0;
};

/// Sums up the operators that one thread runs, its backward passes included, while this exists; one
/// at a time.
class OpProfile {
 public:
  /// Adds what the calling thread has run since the last call. Call it outside operators.
  void add_step();

  /// By name, the slowest first.
  std::vector<OpTime> operators() const;
  /// By kind ("convolution", "matrix product", "ROIAlign" ...), the slowest first.
  std::vector<OpTime> kinds() const;

 private:
  OpTrace trace_;
  std::unordered_map<std::string, OpTime> times_;
};

}  // namespace millrace::cli
