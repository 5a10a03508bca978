// Explains why CUDA finds no GPU.
#pragma once

#include <string>

namespace millrace::cuda {

/// Facts about the CUDA runtime and the driver. CUDA versions are 1000 major + 10 minor.
struct DriverFacts {
  std::string error;                 // error of counting the GPUs; empty = success
  int count = 0;                     // number of GPUs
  int supported_cuda = 0;            // newest CUDA version that the driver supports; 0 = no driver
  int runtime = 0;                   // CUDA version of the runtime that this program is linked to
  std::string driver;                // version of the driver, such as "550.54.14"; empty if unknown
  bool has_visible_devices = false;  // true if CUDA_VISIBLE_DEVICES is set
  std::string visible_devices;       // value of CUDA_VISIBLE_DEVICES
};

/// Returns what is missing and how to fix it, without a full stop; empty if nothing is missing.
std::string missing_driver_text(const DriverFacts& facts);

/// Returns the version in the text of /proc/driver/nvidia/version; empty if it contains none.
std::string driver_version(const std::string& text);

/// Returns the version of this machine's driver; empty if it has none.
std::string installed_driver();

/// Returns "13.0" for 13000.
std::string version_text(int version);

}  // namespace millrace::cuda
