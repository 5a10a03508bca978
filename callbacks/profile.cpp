// [callbacks.profile]: writes a Chrome trace of the operators of a few steps, for ui.perfetto.dev.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/trace/op_trace.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

struct ProfileOptions {
  std::int64_t from_step = 10;
  std::int64_t steps = 3;

  void describe(Options& o) {
    o.add("from_step", from_step,
          "first traced step, counted from 1; a run that is resumed after it traces none",
          {.min = 1})
        .affects(Affects::run);
    o.add("steps", steps, "number of traced steps; a step of Mask R-CNN takes 1 or 2 MB",
          {.min = 1, .max = 1000})
        .affects(Affects::run);
  }
};

/// Traces from before_step of the first step to after_step of the last: operators of all threads,
/// and the activities of the training thread.
class TraceSteps final : public Callback {
 public:
  using Options = ProfileOptions;

  explicit TraceSteps(const Options& options)
      : first_(options.from_step), last_(options.from_step + options.steps - 1) {}

  void before_train(const TrainState& state) override {
    comes_ = state.at.step < first_ && first_ <= state.total_steps;
    if (state.at.step >= first_)
      log_info("profile: step {} is before the resumed checkpoint; no step is traced", first_);
    else if (!comes_)
      log_warning("profile: from_step = {} is after the end of the training, {}; no step is traced",
                  first_, counted(state.total_steps, "step"));
  }

  void before_step(const TrainState& state) override {
    if (state.at.step + 1 != first_) return;
    comes_ = false;
    thread_ = OpTrace::this_thread();
    operators_ = std::make_unique<OpTrace>(state.model.device());
    state.activity->start_recording();
  }

  void after_step(const TrainState& state) override {
    if (operators_ && (state.at.step >= last_ || state.is_last)) write(state);
  }

  void after_train(const TrainState& state) override {
    if (operators_) write(state);
    if (comes_)
      log_warning("profile: the training ended after {}, before from_step = {}; no step was traced",
                  counted(state.at.step, "step"), first_);
  }

 private:
  void write(const TrainState& state) {
    const auto end = Clock::now();
    const auto done = state.activity->stop_recording();
    const auto operators = operators_->take();
    operators_.reset();

    auto events = Json::array();
    std::set<std::uint64_t> threads = {thread_};
    for (std::size_t i = 0; i < done.size(); ++i)
      events.push_back(event(done[i].what, "training", thread_, done[i].since,
                             i + 1 < done.size() ? done[i + 1].since : end));
    for (const auto& op : operators) {
      events.push_back(event(op.name, "operator", op.thread, op.begin, op.end));
      threads.insert(op.thread);
    }
    for (const auto thread : threads)
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", 0},
                        {"tid", thread},
                        {"args",
                         {{"name", thread == thread_ ? std::string("training")
                                                     : fmt::format("thread {}", thread)}}}});
    const auto folder = state.folder / "traces";
    const auto file = folder / fmt::format("step-{:06}.json", first_);
    try {
      make_writable_folder(folder);
      write_file_atomically(file, Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump());
    } catch (const Error& problem) {  // a failure to write does not end the training
      return log_warning("profile: cannot write the trace: {}", problem.what());
    }
    log_info("saved the trace of {} from step {} to {}",
             counted(state.at.step - first_ + 1, "step"), first_, file.string());
  }

  static Json event(const std::string& name, const char* category, std::uint64_t thread,
                    Clock::time_point begin, Clock::time_point end) {
    using Microseconds = std::chrono::duration<double, std::micro>;
    return {{"name", name},
            {"cat", category},
            {"ph", "X"},
            {"pid", 0},
            {"tid", thread},
            {"ts", Microseconds(begin.time_since_epoch()).count()},
            {"dur", Microseconds(end - begin).count()}};
  }

  std::int64_t first_, last_;
  bool comes_ = false;        // true if the first step is still expected
  std::uint64_t thread_ = 0;  // number of the training thread
  std::unique_ptr<OpTrace> operators_;
};

MILLRACE_REGISTER(register_callback<TraceSteps>("profile", "writes a Chrome trace of a few steps"));

}  // namespace
}  // namespace millrace
