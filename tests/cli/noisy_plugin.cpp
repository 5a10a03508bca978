// A detector whose second step depends on the earlier steps of the process.
#include "tests/support/fake_training.h"

namespace {

class Noisy final : public millrace::testing::LineDetector {
 public:
  millrace::LossSums compute_losses(const millrace::Batch& batch,
                                    const millrace::StepInfo& step) override {
    static int calls = 0;
    auto losses = LineDetector::compute_losses(batch, step);
    if (++calls > 1) losses[0].sum = losses[0].sum * static_cast<double>(calls);
    if (step.step == 0) losses[0].sum = losses[0].sum * 0.0;
    return losses;
  }
};

MILLRACE_REGISTER(millrace::register_detector<Noisy>("noisy",
                                                     "returns different losses each time"));

}  // namespace
