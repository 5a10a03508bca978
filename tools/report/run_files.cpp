#include "millrace/tools/report/run_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <tuple>

#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/text.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const ordered_json kNull;

/// Returns the seconds since 1970 of a time such as 2026-01-31T23:59:59Z; 0 for other text.
double seconds_of(const std::string& text) {
  std::tm time{};
  if (!strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time)) return 0;
  return static_cast<double>(timegm(&time));
}

/// Returns the absolute path without a slash at its end.
fs::path whole_path(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

/// Returns the step of a name such as "step-000492.json"; nullopt for other names.
std::optional<std::int64_t> step_of(const fs::path& file) {
  const std::string name = file.stem().string();
  if (file.extension() != ".json" || !name.starts_with("step-")) return std::nullopt;
  const std::string digits = name.substr(5);
  if (digits.empty() || digits.size() > 15 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(digits);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

/// Calls `read`; an exception becomes a remark that begins with `without`.
template <class Read>
void or_remark(RunFiles& run, const std::string& without, const Read& read) {
  try {
    read();
  } catch (const std::exception& problem) {
    run.remarks.push_back(fmt::format("{} ({})", without, sentence_of(problem.what())));
  }
}

void find_results(RunFiles& run) {
  const auto add = [&](const fs::path& file, const std::string& weights) {
    if (const auto step = step_of(file)) run.results.push_back({weights, *step, file});
  };
  for (const auto& entry : entries(run.folder / "detections")) {
    add(entry, "");
    if (fs::is_directory(entry))
      for (const auto& file : entries(entry)) add(file, entry.filename().string());
  }
  std::ranges::sort(run.results, {},
                    [](const ResultsFile& one) { return std::tuple(one.weights, one.step); });
}

void read_class_scores(RunFiles& run) {
  for (const auto& file : entries(run.folder / "scores")) {
    const auto step = step_of(file);
    if (!step) continue;
    or_remark(run, fmt::format("cannot read {}", file.filename().string()), [&] {
      const auto saved = ordered_json::parse(read_file(file));
      if (saved.contains("limit")) run.limited = saved.at("limit").at("text").get<std::string>();
      for (const char* iou : {"bbox", "segm"}) {
        if (!saved.contains(iou)) continue;
        const auto ids = saved.at(iou).at("category_ids").get<std::vector<std::int64_t>>();
        const auto ap = saved.at(iou).at("category_ap").get<std::vector<double>>();
        ClassScores scores{*step, {}};
        for (std::size_t k = 0; k < std::min(ids.size(), ap.size()); ++k) scores.ap[ids[k]] = ap[k];
        run.class_scores[iou].push_back(std::move(scores));
      }
    });
  }
}

/// Returns the last lines of the log.
std::string end_of_log(const fs::path& file) {
  constexpr std::size_t kMost = 2000, kLines = 8;
  std::string text = read_file(file);
  if (text.size() > kMost) text.erase(0, text.size() - kMost);
  std::size_t at = text.size(), lines = 0;
  while (at > 0 && lines <= kLines) lines += text[--at] == '\n';
  return at == 0 ? text : text.substr(at + 1);
}

void find_state(RunFiles& run) {
  const auto& metrics = run.metrics;
  const std::string reached =
      fmt::format("step {}, {:.2f} epochs", metrics.last_step, metrics.last_epoch);
  if (const auto& ended = member(run.last_start(), "ended"); !ended.is_null()) {
    const std::string reason = text_of(ended, "reason");
    const auto step = ended.value("step", metrics.last_step);
    run.state = reason == "done" ? RecordedState::done : RecordedState::stopped;
    run.state_text = reason == "done" ? fmt::format("done after step {}", step)
                                      : fmt::format("stopped by {} after step {}", reason, step);
  } else if (is_locked(run.folder)) {
    run.state = RecordedState::training;
    run.state_text = "training; " + reached + " so far";
  } else if (run.record.is_null()) {
    run.state_text = "ended or training (no record.json); " + reached;
  } else {
    run.state = RecordedState::broken;
    run.state_text = "ended unexpectedly after " + reached;
    if (fs::exists(run.folder / "log.txt"))
      or_remark(run, "cannot read log.txt",
                [&] { run.log_end = end_of_log(run.folder / "log.txt"); });
  }
}

}  // namespace

bool is_locked(const fs::path& run) {
  const UniqueFd fd(::open((run / "lock").c_str(), O_RDONLY | O_CLOEXEC));
  return fd && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

const ordered_json& member(const ordered_json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? kNull : *at;
}

std::string text_of(const ordered_json& object, const char* key) {
  const auto& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

const ordered_json& RunFiles::last_start() const {
  const ordered_json& starts = member(record, "starts");
  return starts.is_array() && !starts.empty() && starts.back().is_object() ? starts.back() : kNull;
}

std::optional<ResultsFile> RunFiles::newest_results() const {
  std::optional<ResultsFile> newest;
  for (const ResultsFile& one : results) {
    const bool trained = one.weights.empty(), has_trained = newest && newest->weights.empty();
    if (!newest || trained > has_trained || (trained == has_trained && one.step > newest->step))
      newest = one;
  }
  return newest;
}

RunFiles read_run_files(const fs::path& folder) {
  RunFiles run;
  run.folder = folder;
  run.name = whole_path(folder).filename().string();
  if (!fs::is_directory(folder))
    throw Error(fmt::format(
        "{} is not a folder; expected the folder of a run, e.g. runs/maskrcnn-1", folder.string()));
  const auto has = [&](const char* name) { return fs::exists(folder / name); };
  const auto record = record_file_in(folder);
  if (!has("config.toml") && record.empty() && !has("metrics.jsonl"))
    throw Error(
        fmt::format("{} is not a run: no config.toml, record.json or metrics.jsonl; expected the "
                    "folder of a run, e.g. runs/maskrcnn-1",
                    folder.string()));
  if (has("config.toml"))
    or_remark(run, "the report omits the configuration", [&] {
      const fs::path file = folder / "config.toml";
      run.config = parse_config(read_file(file), file.string());
    });
  else
    run.remarks.emplace_back("No config.toml: the report omits the configuration");
  if (has("origins.json"))
    or_remark(run, "the report omits the origins of values", [&] {
      run.origins = ordered_json::parse(read_file(folder / "origins.json"))
                        .get<std::map<std::string, std::string>>();
    });
  if (!record.empty())
    or_remark(run, "the report omits the environment",
              [&] { run.record = ordered_json::parse(read_file(record)); });
  if (has("metrics.jsonl"))
    or_remark(run, "the report omits the curves",
              [&] { run.metrics = read_metrics(read_file(folder / "metrics.jsonl")); });
  else
    run.remarks.emplace_back("No metrics.jsonl yet; [callbacks.log] writes it");
  if (run.metrics.is_cut)
    run.remarks.emplace_back("The last line of metrics.jsonl is incomplete and was skipped");
  if (const auto& broken = run.metrics.broken_lines; !broken.empty())
    run.remarks.push_back(
        fmt::format("skipped {} of metrics.jsonl that cannot be parsed, first line {}",
                    counted(broken.size(), "line"), broken.front()));
  find_results(run);
  read_class_scores(run);
  find_state(run);
  return run;
}

std::vector<RunFiles> read_runs(std::span<const fs::path> folders) {
  std::vector<RunFiles> runs;
  for (const fs::path& folder : folders) runs.push_back(read_run_files(folder));
  const auto is_shared = [&](const std::string& name) {
    return std::ranges::count(runs, name, &RunFiles::name) > 1;
  };
  std::vector<fs::path> above;
  for (const fs::path& folder : folders) above.push_back(whole_path(folder).parent_path());
  constexpr int kMostFolders = 8;
  for (int level = 0; level < kMostFolders; ++level) {
    std::vector<bool> shared;
    for (const RunFiles& run : runs) shared.push_back(is_shared(run.name));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!shared[i] || !above[i].has_filename()) continue;
      runs[i].name = above[i].filename().string() + "/" + runs[i].name;
      above[i] = above[i].parent_path();
    }
  }
  return runs;
}

double peak_memory_mib(const RunFiles& run) {
  double most = 0;
  const auto add = [&](const ordered_json& value) {
    if (value.is_number()) most = std::max(most, value.get<double>());
  };
  const auto& used = member(member(run.record, "used"), "peak_memory_mib");
  for (const auto& of_rank : used) add(of_rank);
  if (used.is_null())  // written by an earlier version
    add(member(member(run.last_start(), "ended"), "peak_memory_mib"));
  return most;
}

double trained_seconds(const RunFiles& run, double time) {
  if (time <= 0) return 0;
  double before = 0, began = 0;
  double seconds = 0;
  const auto& starts = member(run.record, "starts");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    began = seconds_of(text_of(starts[i], "time"));
    if (began <= 0) continue;
    if (time < began - 1) break;  // times of starts are whole seconds
    seconds = before + std::max(0., time - began);
    // Training time of this start: until its recorded end, otherwise until its last metrics line
    // before the next start.
    const double next = i + 1 < starts.size() ? seconds_of(text_of(starts[i + 1], "time")) : 0;
    double ended = seconds_of(text_of(member(starts[i], "ended"), "time"));
    if (ended <= 0 && next > 0) {
      for (const auto& [name, values] : run.metrics.by_name)
        for (const MetricValue& value : values)
          if (value.time < next) ended = std::max(ended, value.time);
    }
    before += std::max(0., ended - began);
  }
  return seconds;
}

}  // namespace millrace::report
