#include "millrace/models/detector/device_kinds.h"

namespace millrace {

std::vector<std::string> device_kinds() {
  std::vector<std::string> kinds{"cpu", "cuda"};
  if (c10::is_privateuse1_backend_registered()) kinds.push_back(c10::get_privateuse1_backend());
  return kinds;
}

c10::DeviceType device_type(const std::string& kind) {
  if (kind == "cpu") return c10::DeviceType::CPU;
  return kind == "cuda" ? c10::DeviceType::CUDA : c10::DeviceType::PrivateUse1;
}

}  // namespace millrace
