// [callbacks.run_command]: runs a shell command at intervals, with the state of the training in its
// environment.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/options.h"
#include "millrace/base/process/child_process.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

struct RunCommandOptions {
  std::string every = "1 epoch";
  std::string command;
  Duration time_limit = {600};
  bool wait = true;
  bool must_succeed = false;

  void describe(Options& o) {
    o.add("every", every, "interval; also after the last step");
    o.add("command", command,
          "command for /bin/sh; its environment contains MILLRACE_RUN_FOLDER, MILLRACE_STEP, "
          "MILLRACE_EPOCH and MILLRACE_SCALARS (the latest metrics, as JSON)");
    o.add("time_limit", time_limit,
          "maximum time; a command that takes longer is killed and counts as failed", {.min = 0});
    o.add("wait", wait, "wait for the command; otherwise only the end of the training waits");
    o.add("must_succeed", must_succeed,
          "end training, with a checkpoint, if a command fails; otherwise only warn");
  }

  void check(const Config& table) const {
    require(table, "command", !command.empty(), "is required, e.g. command = \"df -h\"");
  }
};

/// Runs the command when all metrics of its step boundary are known, and logs its output.
class RunCommand final : public Callback, public ReadsMetrics {
 public:
  using Options = RunCommandOptions;

  RunCommand(Options options, std::string name)
      : options_(std::move(options)), name_(std::move(name)) {}

  void trigger(const TrainState&) override { is_due_ = true; }

  void on_scalars(const TrainState& state, const Moment& of, const Scalars&) override {
    if (of.step != state.at.step || !std::exchange(is_due_, false)) return;
    if (running_) {
      log_warning(
          "callback '{}': the command of an earlier step is still running; not starting another",
          name_);
      return;
    }
    began_ = Clock::now();
    running_.emplace(options_.command, environment(state));
    if (options_.wait) finish(state, /*cut_short=*/false);
  }

  void after_step(const TrainState& state) override {
    if (running_ && (running_->has_ended() || is_late())) finish(state, /*cut_short=*/false);
  }

  void after_train(const TrainState& state) override {
    if (running_) finish(state, /*cut_short=*/!state.failure.empty());
  }

 private:
  static std::vector<std::string> environment(const TrainState& state) {
    nlohmann::json scalars = state.latest;
    for (const auto& [name, value, kind] : state.scalars) scalars[name] = value;
    return {"MILLRACE_RUN_FOLDER=" + absolute(state.folder).string(),
            fmt::format("MILLRACE_STEP={}", state.at.step),
            fmt::format("MILLRACE_EPOCH={}", state.at.progress),
            "MILLRACE_SCALARS=" + scalars.dump()};
  }

  bool is_late() const { return seconds_since(began_) > options_.time_limit.seconds; }

  /// Waits for the command until its time limit or a signal; does not wait if `cut_short`.
  void finish(const TrainState& state, bool cut_short) {
    while (!running_->has_ended() && !cut_short && !is_late() && StopSignals::received().empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      state.report_progress();  // the command has its own time limit
    }
    const bool ended_itself = running_->has_ended();
    const bool late = !ended_itself && is_late();
    running_->end();
    std::istringstream output(running_->output());
    for (std::string line; std::getline(output, line);) log_info("callback '{}': {}", name_, line);
    const auto why = ended_itself ? running_->failure()
                     : late       ? "took longer than " + duration_text(options_.time_limit.seconds)
                                  : "killed, since training ends";
    running_.reset();
    if (why.empty()) return;
    failures_ += 1;
    const auto message = fmt::format("the command failed ({}): {}", why, options_.command);
    if (options_.must_succeed && (ended_itself || late))
      return state.fail(
          fmt::format("callback '{}' failed after step {}: {}", name_, state.at.step, message));
    log_warning("callback '{}': {}; {} so far", name_, message, counted(failures_, "failure"));
  }

  RunCommandOptions options_;
  std::string name_;
  bool is_due_ = false;
  std::optional<ChildProcess> running_;
  Clock::time_point began_;
  std::int64_t failures_ = 0;
};

MILLRACE_REGISTER(register_callback<RunCommand>(
    "run_command", "runs a shell command with the state of the training in its environment"));

}  // namespace
}  // namespace millrace
