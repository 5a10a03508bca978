#include "millrace/trainer/run/run_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr auto kDoneReason = "done";

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

void write_run_record(const fs::path& run, const RunRecord& record) {
  const ordered_json json = {{"format", kFormat},
                             {"name", record.name},
                             {"config_file", record.config_file.string()},
                             {"starts", record.starts}};
  write_file_atomically(run / kRunRecord,
                        json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

std::string time_text() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace millrace
