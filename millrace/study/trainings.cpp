#include "millrace/study/trainings.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <thread>

#include "millrace/base/clock.h"
#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/bound_program.h"
#include "millrace/base/process/exit_codes.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/coco/evaluation/matching.h"
#include "millrace/report/run_files.h"
#include "millrace/study/trainer_command.h"

namespace millrace::study {
namespace {

namespace fs = std::filesystem;

constexpr auto kNap = std::chrono::milliseconds(20);

/// Whether the run has come to its end, by its own record: its steps, or a reason to stop that is
/// no signal.
bool has_ended(const fs::path& own) {
  if (own.empty() || record_file_in(own).empty()) return false;
  const auto run = report::read_run_files(own);
  if (!run.last_start().contains("ended")) return false;
  return !report::text_of(run.last_start()["ended"], "reason").starts_with("SIG");
}

/// Waits until nobody trains in a run's folder: the trainings of a study that was killed are killed
/// with it, but may take a while to give their memory back.
void wait_until_free(const fs::path& own) {
  constexpr double kMost = 60;  // seconds; then the training says who is there
  for (const auto began = Clock::now(); seconds_since(began) < kMost;) try {
      const FileLock lock(own / "lock");
      return;
    } catch (const Error&) {
      std::this_thread::sleep_for(kNap);
    }
}

class Trainings {
 public:
  Trainings(Study& study, const Launch& launch)
      : study_(study), launch_(launch), variants_(variants_of(study.plan)) {}

  void run() {
    for (std::size_t i = 0; i < study_.runs.size(); ++i) {
      StudyRun& one = study_.runs[i];
      if (one.state == RunState::done) continue;
      one.why.clear();
      one.state =
          has_ended(own_folder(launch_.folder, study_, one)) ? RunState::done : RunState::waiting;
      if (one.state == RunState::waiting) waiting_.push_back(i);
    }
    write_study(launch_.folder, study_);
    if (!waiting_.empty())
      spdlog::info("{} of {} to train, {} at once, with {} each", waiting_.size(),
                   counted_runs(study_.runs.size()), std::min(launch_.jobs, waiting_.size()),
                   counted(study_.plan.maths_threads, "maths thread"));
    while (!waiting_.empty() || !running_.empty()) {
      if (!StopSignals::received().empty()) {
        stop();
        if (running_.empty()) return;
      } else if (!waiting_.empty() && running_.size() < launch_.jobs && may_begin()) {
        begin();
        continue;
      }
      for (auto one = running_.begin(); one != running_.end();)
        if (one->program.has_ended()) {
          end(*one);
          one = running_.erase(one);
        } else {
          ++one;
        }
      std::this_thread::sleep_for(kNap);
    }
  }

 private:
  struct Running {
    StudyRun& run;
    BoundProgram program;
    Clock::time_point began;
  };

  static std::string counted_runs(std::size_t count) {
    return counted(static_cast<long long>(count), "run");
  }

  const std::string& value_of(const std::string& key) const {
    static const std::string kNone;
    const auto at = study_.plan.configuration.find(key);
    return at == study_.plan.configuration.end() ? kNone : at->second;
  }

  /// One run alone makes a data set that is missing, rather than all of them at once.
  bool may_begin() const {
    if (running_.empty()) return true;
    const auto root = value_of("data.root");
    return root.size() < 2 || fs::exists(root.substr(1, root.size() - 2));
  }

  std::vector<std::string> command(const StudyRun& run) const {
    std::vector<std::string> words = {launch_.program.string(),
                                      "run",
                                      study_.plan.config_file.string(),
                                      "--out",
                                      (launch_.folder / run.folder).string(),
                                      "--resume=auto"};
    add_settings(words, study_.plan.settings);
    add_settings(words, variants_[run.variant].settings);
    std::vector<std::string> own = {fmt::format("train.seed={}", run.seed),
                                    fmt::format("train.threads={}", study_.plan.maths_threads)};
    if (launch_.jobs > 1 && value_of("data.threads") == "0")
      own.push_back(
          fmt::format("data.threads={}",
                      std::max<std::size_t>(
                          1, static_cast<std::size_t>(coco::allowed_threads()) / launch_.jobs)));
    add_settings(words, own);
    return words;
  }

  void begin() {
    StudyRun& run = study_.runs[waiting_.front()];
    waiting_.pop_front();
    const fs::path folder = launch_.folder / run.folder;
    make_writable_folder(folder);
    // A run that was killed before its first checkpoint begins anew, in the same folder
    const auto own = own_folder(launch_.folder, study_, run);
    if (!own.empty()) wait_until_free(own);
    if (!own.empty() && (!fs::exists(own / "checkpoints") || fs::is_empty(own / "checkpoints")))
      fs::remove_all(own);
    const auto file = output_file(launch_.folder, run);
    const UniqueFd output(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!output)
      throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
    spdlog::debug("{}: {}", study_.title(run), joined(command(run), " "));
    running_.push_back({run, BoundProgram(command(run), {output, output}), Clock::now()});
  }

  void end(Running& one) {
    StudyRun& run = one.run;
    const auto own = own_folder(launch_.folder, study_, run);
    const bool saved = one.program.exit_code() == kStoppedEarly;
    const bool asked = !StopSignals::received().empty();
    if (one.program.exit_code() == kDone) {
      run.state = RunState::done;
      ended_seconds_ += seconds_since(one.began);
      ++ended_;
      log_result_of(run, own);
    } else if (!asked || !(saved || one.program.exit_code() < 0)) {
      run.state = RunState::failed;
      run.why =
          saved ? "it was stopped by a signal, and has saved its state" : one.program.failure();
      const auto file = output_file(launch_.folder, run);
      const auto words = last_words(read_file(file));
      if (!saved && !words.empty()) run.why += ": " + words;
      spdlog::error("{}: {} (its output: {})", study_.title(run), run.why, file.string());
    }
    write_study(launch_.folder, study_);
  }

  void log_result_of(const StudyRun& run, const fs::path& own) const {
    std::string figures;
    const auto files = report::read_run_files(own);
    for (const auto& [metric, name] :
         {std::pair("bbox/AP", "box AP"), std::pair("segm/AP", "mask AP")})
      if (const auto& values = files.metrics.of(metric); !values.empty())
        figures += fmt::format("{} {:.2f}, ", name, 100 * values.back().value);
    const double seconds = report::trained_seconds(files, files.metrics.last_time);
    spdlog::info("{}: {}{}; {} of {} done{}", study_.title(run), figures, duration_text(seconds),
                 study_.count(RunState::done), study_.runs.size(), time_left());
  }

  /// ", about 1:20:00 left", from how long the runs took that have ended here.
  std::string time_left() const {
    const double each = ended_seconds_ / static_cast<double>(ended_);
    double work = each * static_cast<double>(waiting_.size());
    for (const auto& one : running_)
      if (one.run.state == RunState::waiting) work += std::max(0., each - seconds_since(one.began));
    if (work <= 0) return "";
    return fmt::format(", about {} left", duration_text(work / static_cast<double>(launch_.jobs)));
  }

  void stop() {
    waiting_.clear();
    if (told_) return;
    told_ = true;
    if (!running_.empty())
      spdlog::info("{}: {} {} their state and end", StopSignals::received(),
                   counted_runs(running_.size()), running_.size() == 1 ? "saves" : "save");
    for (auto& one : running_) one.program.signal(SIGTERM);
  }

  Study& study_;
  const Launch& launch_;
  const std::vector<Variant> variants_;
  std::deque<std::size_t> waiting_;  // positions in runs
  std::list<Running> running_;
  double ended_seconds_ = 0;  // of the runs that ended here
  std::size_t ended_ = 0;
  bool told_ = false;  // the running ones to stop
};

}  // namespace

void run_trainings(Study& study, const Launch& launch) { Trainings(study, launch).run(); }

fs::path output_file(const fs::path& study_folder, const StudyRun& run) {
  return study_folder / run.folder / "output.txt";
}

}  // namespace millrace::study
