#include "millrace/trainer/run/run_start.h"

#include <fmt/format.h>

#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/trainer/run/run_facts.h"

namespace millrace {

RunStart::RunStart(const RunFolder& folder, const RunIdentity& mine)
    : folder_(folder.path()),
      record_(read_run_record(folder_).value_or(
          RunRecord{.name = mine.name, .config_file = mine.config_file})) {}

void RunStart::begin(std::int64_t from_step, const std::filesystem::path& config_file,
                     const std::string& program, nlohmann::ordered_json ranks) {
  const auto number = record_.starts.size() + 1;
  nlohmann::ordered_json start = {{"time", time_text()}, {"from_step", from_step}};
  start.update(process_facts(program));
  start["repository"] =
      repository_facts(config_file, folder_ / fmt::format("changes-{}.diff", number));
  start["ranks"] = std::move(ranks);
  record_.starts.push_back(std::move(start));
  write_run_record(folder_, record_);
}

void RunStart::end(const TrainEnd& end) try {
  record_.starts.back()["ended"] = {{"time", time_text()},
                                    {"step", end.at.step},
                                    {"reason", end.stop_reason.empty() ? "done" : end.stop_reason}};
  write_run_record(folder_, record_);
} catch (const Error& problem) {
  spdlog::warn(problem.what());
}

}  // namespace millrace
