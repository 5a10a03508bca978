#include "millrace/trainer/detector/device_tools.h"

namespace millrace {

Registry<DeviceToolsFactory>& device_tools() {
  static Registry<DeviceToolsFactory> all("tools of a device");
  return all;
}

}  // namespace millrace
