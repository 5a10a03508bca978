#include "millrace/models/ops/device_ops.h"

#include <map>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

std::map<at::DeviceType, DeviceOps>& table() {
  static std::map<at::DeviceType, DeviceOps> ops;
  return ops;
}

}  // namespace

bool register_device_ops(at::DeviceType type, const DeviceOps& ops) {
  return table().emplace(type, ops).second;
}

const DeviceOps* device_ops(const at::Tensor& tensor) {
  const auto type = tensor.device().type();
  if (type == at::kCPU) return nullptr;
  const auto found = table().find(type);
  if (found == table().end())
    throw Error("no plug-in with operators for the device '" + tensor.device().str() +
                "' is loaded; name it in the configuration's `plugins`");
  return &found->second;
}

}  // namespace millrace
