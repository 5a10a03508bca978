// The energy used by the host's processors, if the system reports it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

/// Measures the energy since construction of all processor packages of this host, used by all
/// processes, with RAPL through Linux's powercap interface. Counter overflow is handled if joules()
/// is called at least every few minutes. GPUs are not included.
class EnergyMeter {
 public:
  explicit EnergyMeter(const std::filesystem::path& root = "/sys/class/powercap");

  /// Returns the joules so far; nullopt if the system does not report them to this user.
  std::optional<double> joules();

 private:
  struct Package {
    std::filesystem::path counter;
    double range_uj = 0;  // value at which the counter wraps to 0
    double last_uj = 0;
  };

  std::vector<Package> packages_;
  double joules_ = 0;
};

}  // namespace millrace
