#include "millrace/plugins/cuda/driver.h"

#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <sstream>

namespace millrace::cuda {
namespace {

/// Returns the oldest driver branch that runs a major version of CUDA, from NVIDIA's table of minor
/// version compatibility; nullptr if the version is unknown.
const char* oldest_driver(int major) {
  switch (major) {
    case 11:
      return "450";
    case 12:
      return "525";
    case 13:
      return "580";
    default:
      return nullptr;
  }
}

}  // namespace

std::string missing_driver_text(const DriverFacts& facts) {
  if (facts.error.empty() && facts.count > 0) return {};
  const int major = facts.runtime / 1000;
  const auto* oldest = oldest_driver(major);
  const auto wanted = oldest ? fmt::format("NVIDIA driver {} or later for CUDA {}", oldest, major)
                             : fmt::format("an NVIDIA driver for CUDA {}", major);
  if (facts.supported_cuda > 0 && facts.supported_cuda / 1000 < major)
    return fmt::format(
        "requires {}; the installed driver{} supports CUDA {}: update the driver, or use libtorch "
        "and a build for CUDA {}",
        wanted, facts.driver.empty() ? "" : " " + facts.driver, version_text(facts.supported_cuda),
        facts.supported_cuda / 1000);
  const auto why = facts.error.empty() ? "CUDA reports 0 devices" : facts.error;
  if (facts.supported_cuda == 0) return fmt::format("requires {}, not found: {}", wanted, why);
  const auto hidden = facts.has_visible_devices
                          ? fmt::format(" (CUDA_VISIBLE_DEVICES is '{}')", facts.visible_devices)
                          : "";
  return fmt::format("requires an NVIDIA GPU, not found: {}{}", why, hidden);
}

std::string driver_version(const std::string& text) {
  // Proprietary module: "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22
  // ..."; open module: "... Open Kernel Module for x86_64  580.65.06 ...".
  static const std::regex version(R"(NVRM version:[^\n]*?\s(\d+\.\d+(\.\d+)?)\s)");
  std::smatch found;
  return std::regex_search(text, found, version) ? found[1].str() : std::string();
}

std::string installed_driver() {
  std::ostringstream text;
  text << std::ifstream("/proc/driver/nvidia/version").rdbuf();
  return driver_version(text.str());
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace millrace::cuda
