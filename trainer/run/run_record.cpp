#include "millrace/trainer/run/run_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/trainer/run/run_facts.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kRunFormat = 1;
constexpr auto kDoneReason = "done";

/// Returns the current time as 2026-01-31T23:59:59Z.
std::string time_text() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

/// Records in `targets` which of them an evaluation is the first to reach.
void note_targets(const ordered_json& evaluation, ordered_json& targets) {
  for (auto& target : targets) {
    const auto score = evaluation.find(target.at("score").get<std::string>());
    if (!target.at("step").is_null() || score == evaluation.end() || !score->is_number() ||
        score->get<double>() < target.at("target").get<double>())
      continue;
    for (const auto* key : {"step", "epoch", "wall_s", "cpu_s", "energy_j", "price"})
      target[key] = evaluation.at(key);
  }
}

}  // namespace

std::optional<std::int64_t> RunRecord::ended_after(std::string_view reason) const {
  if (starts.empty() || !starts.back().contains("ended")) return std::nullopt;
  const auto& ended = starts.back().at("ended");
  if (ended.value("reason", "") != reason) return std::nullopt;
  return ended.value("step", std::int64_t{-1});
}

std::optional<std::int64_t> RunRecord::done_after() const { return ended_after(kDoneReason); }

std::optional<RunUse> RunRecord::used() const {
  std::optional<RunUse> sum;
  for (const auto& start : starts) {
    if (!start.contains("used")) continue;
    const auto use = run_use(start.at("used"));
    sum = sum ? * sum += use : use;
  }
  return sum;
}

std::optional<RunRecord> read_run_record(const fs::path& run) {
  const auto file = record_file_in(run);
  if (file.empty()) return std::nullopt;
  try {
    const auto json = ordered_json::parse(read_file(file));
    if (const auto format = json.at("format").get<int>(); format > kRunFormat)
      throw ConfigError(
          fmt::format("{} was written by a newer version (format {}; this version reads {}); "
                      "continue with that version",
                      file.string(), format, kRunFormat));
    RunRecord record{.name = json.at("name"),
                     .config_file = json.at("config_file").get<std::string>(),
                     .starts = json.at("starts")};
    for (const auto& start : record.starts)
      if (!start.is_object())
        throw ConfigError(fmt::format("{}: a start is not an object", file.string()));
    if (json.contains("targets")) record.targets = json.at("targets");
    if (json.contains("evaluations")) record.evaluations = json.at("evaluations");
    // Checks the assumptions of begin() and write().
    for (const auto& evaluation : record.evaluations)
      static_cast<void>(evaluation.at("step").get<std::int64_t>());
    static_cast<void>(record.used());
    return record;
  } catch (const nlohmann::json::exception& problem) {
    throw ConfigError(
        fmt::format("{} is damaged ({}); if it is deleted, the folder's name, NAME-N, determines "
                    "the configuration of the run",
                    file.string(), problem.what()));
  }
}

RunStart::RunStart(const RunFolder& folder, const RunIdentity& mine)
    : folder_(folder.path()),
      record_(read_run_record(folder_).value_or(
          RunRecord{.name = mine.name, .config_file = mine.config_file})) {}

void RunStart::begin(std::int64_t from_step, const fs::path& config_file,
                     const std::string& program, const ordered_json& more,
                     const std::map<std::string, double>& targets) {
  auto reached = ordered_json::array();
  for (const auto& evaluation : record_.evaluations)
    if (evaluation.at("step").get<std::int64_t>() <= from_step) reached.push_back(evaluation);
  record_.evaluations = std::move(reached);
  record_.targets = ordered_json::array();
  for (const auto& [score, target] : targets)
    record_.targets.push_back({{"score", score}, {"target", target}, {"step", nullptr}});
  for (const auto& evaluation : record_.evaluations) note_targets(evaluation, record_.targets);
  ordered_json start = {{"time", time_text()}, {"from_step", from_step}};
  start.update(process_facts(program));
  const auto number = record_.starts.size() + 1;
  start["repository"] =
      repository_facts(config_file, folder_ / fmt::format("changes-{}.diff", number));
  start.update(more);
  record_.starts.push_back(std::move(start));
  write();
  std::error_code missing;
  fs::remove(folder_ / kFormerRecordFile, missing);
}

void RunStart::used(std::int64_t step, const RunUse& use) {
  set_used(step, use);
  write_or_warn();
}

void RunStart::reached(const Moment& of, const Scalars& scores, std::int64_t step,
                       const RunUse& use) {
  set_used(step, use);
  ordered_json evaluation = {{"step", of.step}, {"epoch", of.progress}};
  const auto so_far = to_json(record_.used().value());
  for (const auto* key : {"wall_s", "cpu_s", "energy_j", "price"}) evaluation[key] = so_far.at(key);
  for (const auto& [name, value] : scores) evaluation[name] = value;
  note_targets(evaluation, record_.targets);
  record_.evaluations.push_back(std::move(evaluation));
  write_or_warn();
}

void RunStart::end(const TrainEnd& end, const RunUse& use) {
  set_used(end.at.step, use);
  record_.starts.back()["ended"] = {
      {"time", time_text()},
      {"step", end.at.step},
      {"reason", end.stop_reason.empty() ? kDoneReason : end.stop_reason}};
  write_or_warn();
}

void RunStart::set_used(std::int64_t step, const RunUse& use) {
  ordered_json used = {{"step", step}};
  used.update(to_json(use));
  record_.starts.back()["used"] = std::move(used);
}

void RunStart::write() const {
  const auto used = record_.used();
  const ordered_json json = {{"format", kRunFormat},
                             {"name", record_.name},
                             {"config_file", record_.config_file.string()},
                             {"used", used ? to_json(*used) : ordered_json()},
                             {"targets", record_.targets},
                             {"evaluations", record_.evaluations},
                             {"starts", record_.starts}};
  write_file_atomically(folder_ / kRecordFile,
                        json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

void RunStart::write_or_warn() const try { write(); } catch (const Error& problem) {
  log_warning("{}", problem.what());
}

}  // namespace millrace
