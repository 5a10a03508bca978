// Components that fail at unusual points: in their options, when they are constructed, when weights
// change.
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"

namespace {

using namespace millrace;

struct FaultyOptions {
  void describe(Options&) { throw std::logic_error("no words"); }
};

struct Undescribed final : Callback {
  using Options = FaultyOptions;
};

MILLRACE_REGISTER(register_callback<Undescribed>("faulty_options", "cannot describe its options"));

struct Unmade final : Callback {
  Unmade() { throw std::logic_error("no parts"); }
};

MILLRACE_REGISTER(register_callback<Unmade>("faulty_factory", "cannot be made"));

struct FaultyStage {
  static constexpr std::string_view kName = "faulty_stage";
  Sample operator()(Sample sample) const { return sample; }
  void describe(Options&) {}
  void check() const { throw std::logic_error("no idea"); }
};

MILLRACE_REGISTER(register_stage<FaultyStage>("cannot check its options"));

class FaultyDetector final : public Detector {
 public:
  FaultyDetector() { parameters_.add("weight", at::zeros({1}), ParameterKind::weight); }
  LossSums compute_losses(const Batch&, const StepInfo&) override { return {}; }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }
  void on_parameters_changed() override { throw std::logic_error("no news"); }

 private:
  Parameters parameters_;
};

MILLRACE_REGISTER(register_detector<FaultyDetector>("faulty_detector", "ignores new weights"));

}  // namespace
