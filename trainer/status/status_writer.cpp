#include "millrace/trainer/status/status_writer.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

#include "millrace/base/disk/status_files.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/process_identity.h"
#include "millrace/dataflow/serving/status.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/status/rank_status.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::chrono::milliseconds kLookEvery{500};  // for a request of events
constexpr int kLooksPerFile = 4;
constexpr double kWriteEveryS = std::chrono::duration<double>(kLookEvery * kLooksPerFile).count();

std::string absolute_text(const std::string& file) {
  return file.empty() ? "" : fs::absolute(file).string();
}

void replace(const fs::path& file, const std::string& text) {
  const std::string_view part = text;
  replace_file(file, {&part, 1});
}

}  // namespace

StatusWriter::StatusWriter(const Cluster& cluster, const Activity& activity,
                           const DataOptions& data, fs::path folder, std::int64_t start)
    : cluster_(cluster), activity_(activity), events_(cluster, folder), folder_(std::move(folder)) {
  if (cluster.is_chief()) try {
      fs::remove_all(status_folder(folder_));
      fs::create_directory(status_folder(folder_));
    } catch (const std::exception& problem) {
      warn(problem);
    }
  // The others write once the chief has removed what there was.
  start = std::stoll(cluster.broadcast("start of the run", std::to_string(start)));
  const auto process = own_identity();
  file_ = {{"format", kStatusFormat},
           {"start", start},
           {"rank", cluster.rank()},
           {"ranks", cluster.size()},
           {"host", host_name()},
           {"process", process.number},
           {"process_start", process.start},
           {"system", process.system},
           {"began", wall_clock()},
           {"every_s", kWriteEveryS},
           {"data_servers",
            {{"endpoints", data.source},
             {"key", absolute_text(data.source_key)},
             {"server_key", absolute_text(data.source_server_key)}}}};
  if (events_.sees_run())
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  else
    warn(Error("it does not see the run's folder; share that between the hosts"));
}

void StatusWriter::end(std::string_view state, std::string_view reason) {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  write(state, reason);
}

void StatusWriter::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  int looks = 0;
  do {
    if (looks++ % kLooksPerFile == 0) write("training", "");
    answer();
  } while (!wake_.wait_for(lock, stop, kLookEvery, [&] { return stop.stop_requested(); }));
}

void StatusWriter::write(std::string_view state, std::string_view reason) try {
  auto file = file_;
  file["written"] = wall_clock();
  file["state"] = state;
  file["reason"] = reason;
  file["status"] = rank_status(cluster_, activity_);
  replace(status_file(folder_, cluster_.rank()), serving::status_text(file) + "\n");
} catch (const std::exception& problem) {
  warn(problem);
}

/// Writes the last events if another text than before asks for them.
void StatusWriter::answer() try {
  const auto file = ask_events_file(folder_);
  if (!fs::exists(file)) return;
  auto asked = read_file(file);
  if (asked == answered_) return;
  replace(asked_events_file(folder_, cluster_.rank()), events_.text(asked));
  answered_ = std::move(asked);
} catch (const std::exception& problem) {
  warn(problem);
}

void StatusWriter::warn(const std::exception& problem) {
  if (std::exchange(has_warned_, true)) return;
  spdlog::warn("`trainer status` will not show this rank: {}", problem.what());
}

}  // namespace millrace
