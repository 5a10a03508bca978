// A callback that reads beyond the end of a tensor on the model's device. On a CPU this throws; on
// a GPU it triggers a device-side assertion, after which every CUDA call fails.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace {

using namespace millrace;

struct FaultOptions {
  void describe(Options&) {}
};

class FaultOnDevice final : public Callback {
 public:
  using Options = FaultOptions;

  void before_step(const TrainState& state) override {
    if (state.at.step < 2) return;
    const auto values = state.model.parameters().begin()->value.detach().flatten();
    const auto beyond =
        at::full({1}, values.numel(), at::TensorOptions(at::kLong).device(values.device()));
    static_cast<void>(values.index_select(0, beyond).item<float>());
  }
};

MILLRACE_REGISTER(register_callback<FaultOnDevice>("fault_on_device",
                                                   "reads beyond the end of a tensor"));

}  // namespace
