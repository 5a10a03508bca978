// With tests/models/other_device.cpp, the device of the tests' own as a plug-in brings one:
// `train.device = "other"`. MILLRACE_OTHER_DEVICE_FAULT=crash|hang|throw: so its matcher ends.
#include <ATen/core/Tensor.h>
#include <torch/library.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

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

std::tuple<at::Tensor, at::Tensor> faulty_match(const at::Tensor&, const std::optional<at::Tensor>&,
                                                const at::Tensor&, double, double, bool, double) {
  const std::string fault = std::getenv("MILLRACE_OTHER_DEVICE_FAULT");
  if (fault == "crash") std::abort();
  if (fault == "hang")
    for (;;) ::pause();
  throw std::runtime_error("the matcher is out of order");
}

TORCH_LIBRARY_IMPL(millrace, PrivateUse1, library) {
  if (std::getenv("MILLRACE_OTHER_DEVICE_FAULT")) library.impl("match", faulty_match);
}

}  // namespace
