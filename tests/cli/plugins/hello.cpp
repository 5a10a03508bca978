// A minimal plug-in: a callback, a stage and a detector that do nothing, but fail on request.
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace {

using namespace millrace;

struct HelloOptions {
  std::int64_t times = 3;
  void describe(Options& o) { o.add("times", times, "how often to greet", {.min = 1}); }
};

/// Publishes the number of its greetings, one per step. Throws after `times` steps of this process.
class Hello final : public Callback, public PublishesMetrics {
 public:
  using Options = HelloOptions;

  explicit Hello(const Options& options) : left_(options.times) {}
  std::vector<std::string> publishes() const override { return {"hello/times"}; }
  void after_step(const TrainState& state) override {
    if (--left_ == 0) throw std::runtime_error("greeted enough");
    state.publish({{"hello/times", static_cast<double>(state.at.step)}});
  }

 private:
  std::int64_t left_;
};

MILLRACE_REGISTER(register_callback<Hello>("hello", "greets"));

struct HelloStage {
  static constexpr std::string_view kName = "hello_stage";
  Sample operator()(Sample) const { throw std::runtime_error("no sample is greeted"); }
  void describe(Options&) {}
};

MILLRACE_REGISTER(register_stage<HelloStage>("fails with every sample"));

class HelloDetector final : public Detector {
 public:
  HelloDetector() { parameters_.add("weight", at::zeros({1}), ParameterKind::weight); }
  LossSums compute_losses(const Batch&, const StepInfo&) override {
    throw std::out_of_range("no loss");
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    throw 7;
  }
  const Parameters& parameters() const override { return parameters_; }

 private:
  Parameters parameters_;
};

MILLRACE_REGISTER(register_detector<HelloDetector>("hello_detector", "fails in everything"));

}  // namespace
