// The energy that a host's processors have taken, if the system reports it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// Counts from when it was made, over all processor packages of this host and all processes: RAPL
/// through Linux's power capping. A counter that has started anew is followed if it is looked at
/// at least every few minutes. GPUs are not counted.
class EnergyMeter {
 public:
  explicit EnergyMeter(const std::filesystem::path& root = "/sys/class/powercap");

  /// Joules so far; nullopt if the system does not report them to this user.
  std::optional<double> joules();

 private:
  struct Package {
    std::filesystem::path counter;
    double range_uj = 0;  // after which it starts anew
    double last_uj = 0;
  };

  std::vector<Package> packages_;
  double joules_ = 0;
};

}  // namespace millrace
