// Where the time of a thread goes, operator by operator, as libtorch itself tells of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::cli {

/// What was spent in one operator, or in all of one kind.
struct OpTime {
  std::string name;
  double seconds = 0;  // without the operators that it called itself
  std::int64_t calls = 0;
};

/// Records every operator that the thread which made it runs, its backward passes included, for as long as it lives;
/// one at a time. Nothing is recorded, and nothing spent, where there is none.
class OpProfile {
 public:
  OpProfile();
  OpProfile(const OpProfile&) = delete;
  ~OpProfile();

  /// By name, the dearest first.
  std::vector<OpTime> operators() const;

  /// By kind ("convolution", "matrix product", "ROIAlign" ...), the dearest first.
  std::vector<OpTime> kinds() const;

 private:
  std::uint64_t handle_;
};

}  // namespace millrace::cli
