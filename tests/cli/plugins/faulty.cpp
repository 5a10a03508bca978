// Components that fail where nobody looks: in their options, when they are made, when they are told of new weights.
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/detector/detector.h"

namespace {

using namespace millrace;

struct FaultyOptions {
  void describe(Options&) { throw std::logic_error("no words"); }
};

struct Nothing final : Callback {};

const bool in_describe =
    callbacks().add<FaultyOptions>("faulty_options", "cannot describe its options",
                                   {[](const Config&) { return std::make_unique<Nothing>(); }});

const bool in_factory = callbacks().add<NoOptions>(
    "faulty_factory", "cannot be made",
    {[](const Config&) -> std::unique_ptr<Callback> { throw std::logic_error("no parts"); }});

struct FaultyStage {
  static constexpr std::string_view kName = "faulty_stage";
  Sample operator()(Sample sample) const { return sample; }
  void describe(Options&) {}
  void check() const { throw std::logic_error("no idea"); }
};

const bool in_check = register_stage<FaultyStage>("cannot check its options");

class FaultyDetector final : public Detector {
 public:
  FaultyDetector() { parameters_.add("weight", at::zeros({1}), ParameterKind::weight); }
  Losses losses(const Batch&, const StepInfo&) override { return {}; }
  std::vector<std::vector<DetectedObject>> detect(const Batch&) override { return {}; }
  const Parameters& parameters() const override { return parameters_; }
  void parameters_changed() override { throw std::logic_error("no news"); }

 private:
  Parameters parameters_;
};

const bool in_parameters_changed = detectors().add<NoOptions>(
    "faulty_detector", "hears of no new weights",
    [](const Config&, const ModelContext&) { return std::make_unique<FaultyDetector>(); });

}  // namespace
