// A callback that reads beyond a tensor on the model's device: an exception on a CPU; on a GPU a
// device-side assertion, after which each CUDA call fails.
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
