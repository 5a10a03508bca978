#include "tests/gpu/on_device.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "millrace/base/errors.h"
#include "millrace/models/detector/device_kinds.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/run/device.h"

namespace millrace::testing {

void TestedDevice::add_options(CLI::App& app) {
  app.add_option("--device", kind, "type of device, as in train.device")->capture_default_str();
  app.add_option("--plugin", plugin, "plug-in with the device's operators")->capture_default_str();
  app.add_flag("--small", small, "use tiny models and few steps");
}

void TestedDevice::open(std::int64_t local_rank) {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // for reproducible results
  plugin = load_plugin(plugin, "--plugin");
  if (const auto kinds = device_kinds(); std::ranges::count(kinds, kind) == 0)
    throw ConfigError(fmt::format("--device {}: {} does not provide this device", kind, plugin));
  // On the test device, all ranks share one device.
  device = open_device(kind, on_cuda() ? local_rank : 0);
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
}

TestedDevice& tested() {
  static TestedDevice one;
  return one;
}

}  // namespace millrace::testing
