#include "millrace/trainer/run/run_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/run/run_facts.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr auto kDoneReason = "done";

/// Now, as 2026-01-31T23:59:59Z.
std::string time_text() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace

std::optional<std::int64_t> RunRecord::done_after() const {
  if (starts.empty() || !starts.back().contains("ended")) return std::nullopt;
  const auto& ended = starts.back().at("ended");
  if (ended.value("reason", "") != kDoneReason) return std::nullopt;
  return ended.value("step", std::int64_t{-1});
}

std::optional<RunRecord> read_run_record(const fs::path& run) try {
  const auto file = run / kRunRecord;
  if (!fs::exists(file)) return std::nullopt;
  const auto json = ordered_json::parse(read_file(file));
  if (const auto format = json.at("format").get<int>(); format > kFormat)
    throw ConfigError(fmt::format(
        "{} was written by a newer version (format {}; this one reads {}): go on with that version",
        file.string(), format, kFormat));
  RunRecord record{json.at("name"), json.at("config_file").get<std::string>(), json.at("starts")};
  for (const auto& start : record.starts)
    if (!start.is_object())
      throw ConfigError(fmt::format("{}: a start is no object", file.string()));
  return record;
} catch (const nlohmann::json::exception& problem) {
  throw ConfigError(
      fmt::format("{} is damaged ({}): without it the folder's name, NAME-N, says "
                  "which configuration the run is of",
                  (run / kRunRecord).string(), problem.what()));
}

RunStart::RunStart(const RunFolder& folder, const RunIdentity& mine)
    : folder_(folder.path()),
      record_(read_run_record(folder_).value_or(
          RunRecord{.name = mine.name, .config_file = mine.config_file})) {}

void RunStart::begin(std::int64_t from_step, const fs::path& config_file,
                     const std::string& program, ordered_json ranks, ordered_json memory) {
  const auto number = record_.starts.size() + 1;
  ordered_json start = {{"time", time_text()}, {"from_step", from_step}};
  start.update(process_facts(program));
  start["repository"] =
      repository_facts(config_file, folder_ / fmt::format("changes-{}.diff", number));
  start["ranks"] = std::move(ranks);
  if (!memory.is_null()) start["memory_forecast_mib"] = std::move(memory);
  record_.starts.push_back(std::move(start));
  write();
}

void RunStart::end(const TrainEnd& end) try {
  record_.starts.back()["ended"] = {
      {"time", time_text()},
      {"step", end.at.step},
      {"reason", end.stop_reason.empty() ? kDoneReason : end.stop_reason},
      {"peak_memory_mib", peak_rss_bytes() >> 20}};
  write();
} catch (const Error& problem) {
  spdlog::warn(problem.what());
}

void RunStart::write() const {
  const ordered_json json = {{"format", kFormat},
                             {"name", record_.name},
                             {"config_file", record_.config_file.string()},
                             {"starts", record_.starts}};
  write_file_atomically(folder_ / kRunRecord,
                        json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace millrace
