// The smallest plug-in: a callback, a stage and a detector that do nothing but fail where they are told to.
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/train_state.h"

namespace {

using namespace millrace;

struct HelloOptions {
  std::int64_t times = 3;
  void describe(Options& o) { o.add("times", times, "how often to greet", {.min = 1}); }
};

/// Publishes how often it has greeted: once a step. Throws after `times` steps of this process.
class Hello final : public Callback {
 public:
  explicit Hello(const HelloOptions& options) : left_(options.times) {}
  std::vector<std::string> publishes() const override { return {"hello/times"}; }
  void after_step(TrainState& state) override {
    if (--left_ == 0) throw std::runtime_error("greeted enough");
    state.publish({{"hello/times", static_cast<double>(state.at.step)}});
  }

 private:
  std::int64_t left_;
};

const bool hello_callback = callbacks().add<HelloOptions>(
    "hello", "greets", {[](const Config& table) {
      return std::make_unique<Hello>(read_options<HelloOptions>(table));
    }});

struct HelloStage {
  static constexpr std::string_view kName = "hello_stage";
  Sample operator()(Sample) const { throw std::runtime_error("no sample is greeted"); }
  void describe(Options&) {}
};

const bool hello_stage = register_stage<HelloStage>("fails with every sample");

class HelloDetector final : public Detector {
 public:
  HelloDetector() { parameters_.add("weight", at::zeros({1}), ParameterKind::weight); }
  Losses losses(const Batch&, const StepInfo&) override { throw std::out_of_range("no loss"); }
  std::vector<std::vector<DetectedObject>> detect(const Batch&) override { throw 7; }
  const Parameters& parameters() const override { return parameters_; }

 private:
  Parameters parameters_;
};

const bool hello_detector = detectors().add<NoOptions>(
    "hello_detector", "fails in everything",
    [](const Config&, const ModelContext&) { return std::make_unique<HelloDetector>(); });

}  // namespace
