// [callbacks.report]: writes report.html in the run folder after every evaluation.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <future>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/log.h"
#include "millrace/callbacks/common/scalar_writer.h"
#include "millrace/tools/report/report.h"
#include "millrace/tools/report/view.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

constexpr auto kPage = "report.html";
constexpr int kNice = 19;  // niceness of its thread, so that training has priority

/// During training, a thread of the lowest priority creates the page from the files of the run
/// folder; scores that arrive meanwhile are on the next page. The last page is created when
/// training ends. Readers of the file see either the old or the new page.
class WriteReport final : public Callback, public ReadsMetrics {
 public:
  static constexpr bool kByDefault = true;

  WriteReport(const NoOptions&, std::string name) : name_(std::move(name)) {}
  ~WriteReport() override {
    if (page_.valid()) page_.wait();
  }

  void before_train(const TrainState&) override { has_begun_ = true; }

  void before_step(const TrainState& state) override {
    if (!is_due_ || is_writing()) return;
    is_due_ = false;  // every callback has written its output for these scores
    page_ = std::async(std::launch::async, [job = job_of(state)] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
      write(job);
    });
  }

  void after_train(const TrainState&) override { ends_ = true; }

  void on_scalars(const TrainState& state, const Moment& of, const Scalars& published) override {
    is_due_ |= std::ranges::any_of(published, [](const auto& one) {
      return std::string_view(one.first).ends_with("bbox/AP");
    });
    if (!ends_ || !has_begun_ || state.folder.empty()) return;
    last_.emplace_back(of, published);
    if (of.step != state.at.step) return;
    if (page_.valid()) page_.wait();
    Job job = job_of(state);
    job.ending = ending_of(state);
    job.last = std::exchange(last_, {});
    write(job);
    log_info("saved report {}", (state.folder / kPage).string());
  }

 private:
  /// Input of a page besides the files of the run folder.
  struct Job {
    std::string callback;
    std::filesystem::path folder;
    std::optional<DataSplit> split;  // validation split, whose annotations are in memory
    // End of the training, not yet in record.json.
    std::optional<std::pair<report::RecordedState, std::string>> ending;
    // Last metrics, which may not yet be in metrics.jsonl.
    std::vector<std::pair<Moment, Scalars>> last;
  };

  Job job_of(const TrainState& state) const {
    Job job{name_, state.folder, {}, {}, {}};
    if (state.validation) job.split = state.validation->split;
    return job;
  }

  static std::pair<report::RecordedState, std::string> ending_of(const TrainState& state) {
    const auto at = fmt::format("after step {}", state.at.step);
    if (!state.failure.empty())
      return {report::RecordedState::broken, fmt::format("failed {}: {}", at, state.failure)};
    if (!state.stop_reason().empty())
      return {report::RecordedState::stopped,
              fmt::format("stopped by {} {}", state.stop_reason(), at)};
    return {report::RecordedState::done, "done " + at};
  }

  bool is_writing() const {
    return page_.valid() && page_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }

  /// A failure to write does not end the training.
  static void write(const Job& job) try {
    report::RunFiles run = report::read_run_files(job.folder);
    for (const auto& [of, scalars] : job.last) add_missing(run.metrics, of, scalars);
    if (job.ending) std::tie(run.state, run.state_text) = *job.ending;
    report::ReportOptions options;
    // Confidence intervals are the most expensive part; only a training that is done waits for
    // them.
    if (!job.ending || job.ending->first != report::RecordedState::done) options.draws = 0;
    if (!job.ending) options.threads = 1;
    if (job.split)
      options.truth = [&](const report::RunFiles& files) {
        return report::Truth{report::evaluated_part(job.split->annotations, job.split->category_ids,
                                                    report::evaluated_images(files)),
                             job.split->images};
      };
    report::write_view(job.folder / kPage, "runs", "trainer report",
                       report::runs_view({&run, 1}, options));
  } catch (const std::exception& problem) {
    log_warning("callback '{}': cannot write {}: {}", job.callback, (job.folder / kPage).string(),
                problem.what());
  }

  /// Adds values that callbacks called after this one may not have written yet.
  static void add_missing(report::MetricsLog& metrics, const Moment& of, const Scalars& scalars) {
    for (const auto& [name, value] : scalars) {
      auto& values = metrics.by_name[name];
      if (std::ranges::count(values, of.step, &report::MetricValue::step) > 0) continue;
      values.push_back({of.step, of.progress, seconds_since_1970(), value});
      std::ranges::stable_sort(values, {}, &report::MetricValue::step);
    }
    metrics.last_step = std::max(metrics.last_step, of.step);
    metrics.last_epoch = std::max(metrics.last_epoch, of.progress);
  }

  std::string name_;
  bool has_begun_ = false;
  bool is_due_ = false;  // true if there are scores that the last page lacks
  bool ends_ = false;    // true if after_train has been called
  std::vector<std::pair<Moment, Scalars>> last_;
  std::future<void> page_;
};

MILLRACE_REGISTER(register_callback<WriteReport>(
    "report", "writes report.html after every evaluation and at the end"));

}  // namespace
}  // namespace millrace
