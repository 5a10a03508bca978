// Why CUDA finds no GPU, in words.
#pragma once

#include <string>

namespace millrace::cuda {

/// Facts about CUDA's runtime and the driver. Versions of CUDA are 1000 major + 10
/// minor.
struct DriverFacts {
  std::string error;    // of counting the GPUs; empty: it worked
  int count = 0;        // GPUs
  int supports = 0;     // the newest CUDA that the driver is for; 0: there is no driver
  int runtime = 0;      // the CUDA that this program is linked to
  std::string driver;   // the driver's own version, "550.54.14"; empty: unknown
  bool hides = false;   // CUDA_VISIBLE_DEVICES is set
  std::string visible;  // its value
};

/// What is missing and what to do, without a full stop; empty if nothing is missing.
std::string missing(const DriverFacts& facts);

/// The version in the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_version(const std::string& text);

/// The version of this machine's driver; empty if there is none.
std::string installed_driver();

/// "13.0" of 13000.
std::string version_text(int version);

}  // namespace millrace::cuda
