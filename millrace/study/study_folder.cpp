#include "millrace/study/study_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::study {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr const char* kStates[] = {"waiting", "done", "failed"};

RunState state_of(const std::string& name) {
  const auto at = std::ranges::find(kStates, name);
  if (at == std::end(kStates))
    throw ConfigError(fmt::format("{}: a run's state is '{}'", kStudyFile, name));
  return static_cast<RunState>(at - std::begin(kStates));
}

/// The folder of a variant's runs, less their seed: what is no letter or digit becomes a dash where
/// a shell or a file system could object.
std::vector<std::string> folder_names(const StudyPlan& plan) {
  constexpr std::size_t kLongest = 100;
  std::vector<std::string> names;
  for (const auto& variant : variants_of(plan)) {
    std::string name;
    for (const char c : plan.varied.empty() ? "" : variant.name) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                         (c >= 'a' && c <= 'z') || c == '.' || c == '=' || c == '_' || c == '-';
      if (plain || (!name.empty() && name.back() != '-')) name += plain ? c : '-';
    }
    names.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].size() > kLongest || std::ranges::count(names, names[i]) > 1)
      names[i] = fmt::format("variant-{}", i + 1);
  return names;
}

ordered_json to_json(const Study& study) {
  auto runs = ordered_json::array();
  const auto variants = variants_of(study.plan);
  for (const auto& run : study.runs)
    runs.push_back({{"variant", variants[run.variant].name},
                    {"seed", run.seed},
                    {"folder", run.folder},
                    {"state", kStates[static_cast<std::size_t>(run.state)]},
                    {"why", run.why}});
  return {{"format", kFormat}, {"plan", to_json(study.plan)}, {"runs", runs}};
}

}  // namespace

std::string Study::title(const StudyRun& run) const {
  return fmt::format("{}, seed {}", variants_of(plan)[run.variant].name, run.seed);
}

std::size_t Study::count(RunState state) const {
  return static_cast<std::size_t>(std::ranges::count(runs, state, &StudyRun::state));
}

Study new_study(StudyPlan plan) {
  Study study{std::move(plan), {}};
  const auto names = folder_names(study.plan);
  for (std::int64_t seed = 1; seed <= study.plan.seeds; ++seed)
    for (std::size_t v = 0; v < names.size(); ++v)
      study.runs.push_back(
          {.variant = v,
           .seed = seed,
           .folder = fmt::format("{}{}seed-{}", names[v], names[v].empty() ? "" : "-", seed)});
  return study;
}

Study continued(const Study& was, const StudyPlan& now) {
  auto plan = now;
  plan.maths_threads = was.plan.maths_threads;
  Study study = new_study(std::move(plan));
  std::ranges::copy(was.runs, study.runs.begin());
  return study;
}

std::optional<Study> read_study(const fs::path& folder) {
  const fs::path file = folder / kStudyFile;
  if (!fs::exists(file)) return std::nullopt;
  try {
    const auto json = ordered_json::parse(read_file(file));
    if (json.at("format") != kFormat)
      throw ConfigError(fmt::format("{} was written by another version of trainer", file.string()));
    Study study = new_study(plan_from(json.at("plan")));
    const auto& runs = json.at("runs");
    if (runs.size() != study.runs.size())
      throw ConfigError(fmt::format("{} has {} runs, and its plan {}", file.string(), runs.size(),
                                    study.runs.size()));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      study.runs[i].folder = runs[i].at("folder").get<std::string>();
      study.runs[i].state = state_of(runs[i].at("state").get<std::string>());
      study.runs[i].why = runs[i].at("why").get<std::string>();
    }
    return study;
  } catch (const ordered_json::exception& problem) {
    throw ConfigError(fmt::format(
        "{} is damaged: {}. It is only replaced as a whole, so something else has written it",
        file.string(), problem.what()));
  }
}

void write_study(const fs::path& folder, const Study& study) {
  write_file_atomically(
      folder / kStudyFile,
      to_json(study).dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

fs::path own_folder(const fs::path& study_folder, const Study& study, const StudyRun& run) {
  fs::path newest;
  long long highest = 0;
  const std::string before = study.plan.name() + "-";
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(study_folder / run.folder, none)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || !name.starts_with(before)) continue;
    const long long number = std::strtoll(name.c_str() + before.size(), nullptr, 10);
    if (number > highest) highest = number, newest = entry.path();
  }
  return newest;
}

}  // namespace millrace::study
