#include "millrace/trainer/run/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "millrace/base/disk/record_file.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/run/config_changes.h"
#include "millrace/trainer/run/run_record.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr auto kConfig = "config.toml";
constexpr auto kLock = "lock";
constexpr std::size_t kMaxListed = 20;  // maximum number of folders in an error message

/// Returns N for a folder name-N, else 0.
long long number_of(const fs::path& folder, const std::string& name) {
  const auto text = folder.filename().string();
  if (!text.starts_with(name + "-")) return 0;
  const auto number = text.substr(name.size() + 1);
  if (number.empty() || number.size() > 9 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return 0;
  return std::stoll(number);
}

bool is_run(const fs::path& folder) {
  return !record_file_in(folder).empty() ||
         (fs::exists(folder / kConfig) && fs::exists(folder / kLock));  // run of an older version
}

/// Returns the name of a run's configuration; from its folder's name if an older version did not
/// record it.
std::string name_of(const fs::path& run, const std::optional<RunRecord>& record) {
  if (record) return record->name;
  const auto folder = run.filename().string();
  return folder.substr(0, folder.rfind('-'));
}

/// Returns how a run of another configuration file of the same name differs; empty = it does not.
std::string difference(const fs::path& run, const RunRecord& record, const RunIdentity& mine) {
  if (record.config_file == mine.config_file) return {};
  const auto was = parse_config(read_file(run / kConfig), (run / kConfig).string());
  for (const auto& change : config_changes(was, mine.config))
    if (change.was != "nothing" && change.is != "nothing")  // both versions have the key
      return fmt::format("was started from {}, with {} = {} instead of {}",
                         record.config_file.string(), change.key, change.was, change.is);
  return {};
}

/// Returns why a training cannot resume a folder's content; empty = it can.
std::string why_not(const fs::path& folder, const RunIdentity& mine) try {
  if (!is_run(folder)) return "is not a run folder";
  const auto record = read_run_record(folder);
  if (const auto name = name_of(folder, record); name != mine.name)
    return fmt::format("is a run of '{}'", name);
  if (number_of(folder, mine.name) == 0)
    return fmt::format("is no longer named {}-N; use --out to continue it", mine.name);
  if (list_checkpoints(folder / "checkpoints").empty()) return "has no checkpoint";
  return record ? difference(folder, *record, mine) : "";
} catch (const Error& problem) {
  return problem.what();
}

std::vector<fs::path> folders_in(const fs::path& output) {
  std::vector<fs::path> found;
  if (!fs::is_directory(output)) return found;
  for (const auto& entry : fs::directory_iterator(output))
    if (entry.is_directory()) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

/// Throws ConfigError if a folder cannot be created there. Does not create it.
void check_can_be_made(const fs::path& output) {
  auto there = fs::absolute(output);
  while (!fs::exists(there) && there.has_relative_path()) there = there.parent_path();
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(
        fmt::format("{}: cannot create a run folder there: {} {}; choose another one with --out or "
                    "train.output",
                    output.string(), there.string(), why));
  };
  if (!fs::is_directory(there)) refuse("is a file");
  if (::access(there.c_str(), W_OK | X_OK) != 0) refuse("is not writable");
}

fs::path check_named(const fs::path& run, const RunIdentity& mine, Resume resume) {
  if (resume == Resume::no)
    throw ConfigError(
        fmt::format("{} is a run folder; add --resume to continue it, or choose the folder in "
                    "which the new run folder is created",
                    run.string()));
  if (list_checkpoints(run / "checkpoints").empty())
    throw ConfigError(fmt::format("--resume: the run {} has no checkpoint", run.string()));
  if (const auto name = name_of(run, read_run_record(run)); name != mine.name)
    log_warning("{} was started as a run of '{}'", run.string(), name);
  return run;
}

}  // namespace

RunIdentity identity_of(const fs::path& config_file, const Config& config) {
  return {config_file.stem().string(), fs::weakly_canonical(fs::absolute(config_file)), config};
}

std::optional<fs::path> find_run(const fs::path& output, const RunIdentity& mine, Resume resume) {
  if (is_run(output)) {
    const auto run = output.has_filename() ? output : output.parent_path();
    return check_named(run, mine, resume);
  }
  if (resume == Resume::no) {
    check_can_be_made(output);
    return std::nullopt;
  }
  std::optional<fs::path> best;
  std::vector<std::string> others;
  for (const auto& folder : folders_in(output)) {
    const auto reason = why_not(folder, mine);
    if (!reason.empty())
      others.push_back(fmt::format("{} {}", folder.string(), reason));
    else if (!best || number_of(folder, mine.name) > number_of(*best, mine.name))
      best = folder;
  }
  if (best) return best;
  if (others.size() > kMaxListed) {
    const auto more = others.size() - kMaxListed;
    others.resize(kMaxListed);
    others.push_back(fmt::format("and {} more", more));
  }
  if (resume == Resume::required)
    throw ConfigError(fmt::format(
        "--resume: no run of '{}' with a checkpoint found in {}{}\nchoose a run folder with --out, "
        "or start a run without --resume (--resume=auto does so if none is found)",
        mine.name, output.string(), others.empty() ? "" : ":\n  " + joined(others, "\n  ")));
  check_can_be_made(output);
  log_info("no run of '{}' with a checkpoint found in {}; starting a new one", mine.name,
           output.string());
  for (const auto& other : others) log_info("  {}", other);
  return std::nullopt;
}

fs::path make_run_folder(const fs::path& output, const std::string& name) {
  make_writable_folder(output);
  long long highest = 0;
  for (const auto& folder : folders_in(output))
    highest = std::max(highest, number_of(folder, name));
  for (auto number = highest + 1;; ++number) {
    const auto folder = output / fmt::format("{}-{}", name, number);
    std::error_code problem;
    if (fs::create_directory(folder, problem)) return folder;
    if (problem)
      throw Error(
          fmt::format("{}: cannot create this folder: {}", folder.string(), problem.message()));
  }  // another process has taken the number
}

RunFolder::RunFolder(fs::path folder) : path_(std::move(folder)), lock_(path_ / kLock) {}

RunFolder::~RunFolder() { log_to_file({}); }

void RunFolder::keep_log() { log_to_file(path_ / "log.txt"); }

void RunFolder::remove() {
  log_to_file({});
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace millrace
