// Together with tests/models/other_device.cpp, provides the test device as a plug-in does:
// `train.device = "other"`.
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "millrace/models/detector/device_tools.h"

namespace {

using namespace millrace;

class OtherTools final : public DeviceTools {
 public:
  Facts facts() const override { return {{"the device", "of the tests' own"}}; }
  std::function<void()> recorded(const std::function<void()>& work) const override {
    work();
    return work;
  }
  std::string sum_alone(const at::Tensor&) const override { return "nothing, of one"; }
};

MILLRACE_REGISTER(device_tools().add<NoOptions>("other", "the tests' own",
                                                [] { return std::make_unique<OtherTools>(); }));

}  // namespace
