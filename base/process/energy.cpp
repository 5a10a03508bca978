#include "millrace/base/process/energy.h"

#include <algorithm>
#include <system_error>

#include "millrace/base/process/process_usage.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// Returns true for a package such as "intel-rapl:0", false for its part "intel-rapl:0:1", which is
/// already included in the package.
bool is_package(const std::string& name) {
  return name.find("rapl:") != name.npos && std::ranges::count(name, ':') == 1;
}

}  // namespace

EnergyMeter::EnergyMeter(const fs::path& root) {
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(root, unreadable)) {
    if (!is_package(entry.path().filename())) continue;
    const auto counter = entry.path() / "energy_uj";
    const auto now = read_number(counter);
    if (!now) {  // a sum without one package would be too low
      packages_.clear();
      return;
    }
    packages_.push_back(
        {counter, read_number(entry.path() / "max_energy_range_uj").value_or(0), *now});
  }
}

std::optional<double> EnergyMeter::joules() {
  if (packages_.empty()) return std::nullopt;
  for (auto& package : packages_) {
    const auto now = read_number(package.counter);
    if (!now) continue;
    const double more = *now - package.last_uj;
    joules_ += 1e-6 * (more < 0 ? more + package.range_uj : more);
    package.last_uj = *now;
  }
  return joules_;
}

}  // namespace millrace
