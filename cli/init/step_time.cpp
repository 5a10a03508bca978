#include "millrace/cli/init/step_time.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kUntimed = 2, kFewestTimed = 3, kMostTimed = 10;  // steps
constexpr double kLongest = 20;                                         // seconds

/// Measures the time from the end of each step to the end of the next, and stops the training.
class TimeWholeSteps final : public Callback {
 public:
  explicit TimeWholeSteps(StepTime& result) : result_(result) {}

  void after_step(const TrainState& state) override {
    ends_.push_back(seconds_since(start_));
    if (ends_.size() == kUntimed) untimed_cpu_s_ = cpu_seconds();
    const auto timed = ends_.size() - std::min(ends_.size(), kUntimed);
    if (timed >= kMostTimed || (timed >= kFewestTimed && ends_.back() > kLongest))
      state.stop("the steps were timed");
  }
  void after_train(const TrainState&) override {
    std::vector<double> steps;
    for (auto i = kUntimed; i < ends_.size(); ++i) steps.push_back(ends_[i] - ends_[i - 1]);
    if (steps.empty()) return;
    std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
    result_.step_s = steps[steps.size() / 2];
    result_.steps = std::ssize(steps);
    result_.cpu_s = (cpu_seconds() - untimed_cpu_s_) / static_cast<double>(steps.size());
  }

 private:
  StepTime& result_;
  Clock::time_point start_ = Clock::now();
  std::vector<double> ends_;
  double untimed_cpu_s_ = 0;
};

/// Trains up to `steps` steps.
void train(const Session& session, const TrainData& data, Detector& detector, std::int64_t steps,
           CallbackList callbacks) {
  auto plan = session.plan(detector, data);
  plan.train.max_steps = steps;
  plan.train.epochs = 1e9;
  Trainer(std::move(plan), std::move(callbacks)).run();
}

}  // namespace

double measure_image(Recipe recipe) {
  recipe.data.batch_size = 1;
  recipe.train.passes = 1;
  const auto before = rss_bytes();
  const Session session(std::move(recipe));
  const auto data = open_train_data(session.recipe().data, session.recipe().sources);
  const auto detector = session.make_initial_detector(data.classes);
  train(session, data, *detector, 1, {});
  return static_cast<double>(peak_rss_bytes() - before);
}

StepTime measure_steps(const Recipe& recipe) {
  const Session session(recipe);
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto detector = session.make_initial_detector(data.classes);
  StepTime result;
  {
    CallbackList callbacks;
    callbacks.add("time", std::make_unique<TimeWholeSteps>(result));
    train(session, data, *detector, kUntimed + kMostTimed, std::move(callbacks));
  }
  const auto validation = session.passes_over(open_split(recipe.data, recipe.data.val));
  const auto batches = validation.start({});
  for (int i = 0; i < 2; ++i)  // the second is timed; the first if it is the only one
    if (const auto batch = batches->next()) {
      const auto start = Clock::now();
      detector->detect(batch->value);
      result.detect_s = seconds_since(start) / static_cast<double>(batch->value.size());
    }
  result.memory = peak_rss_bytes();
  return result;
}

TrainingTime training_time(const advice::Plan& plan, const StepTime& step, std::size_t images) {
  const auto evaluations =
      std::ceil(static_cast<double>(plan.epochs) / static_cast<double>(plan.evaluate_every));
  const auto evaluate_s = evaluations * step.detect_s * static_cast<double>(images);
  return {step.step_s * static_cast<double>(plan.steps) + evaluate_s, evaluate_s};
}

}  // namespace millrace::cli
