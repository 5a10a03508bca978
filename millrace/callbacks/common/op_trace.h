// Which operators ran when, as libtorch itself tells of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

struct OpSpan {
  using Clock = std::chrono::steady_clock;
  std::string name;  // "aten::convolution"
  std::uint64_t thread = 0;
  Clock::time_point begin, end;
};

/// Records every operator of every thread, backward passes included, for as long as it lives; one at a time. Nothing is
/// recorded, and nothing spent, where there is none.
class OpTrace {
 public:
  OpTrace();
  OpTrace(const OpTrace&) = delete;
  ~OpTrace();

  /// What has ended so far, in that order.
  std::vector<OpSpan> take();

  /// The number that the calling thread has in spans.
  static std::uint64_t this_thread();

 private:
  std::uint64_t handle_;
};

}  // namespace millrace
