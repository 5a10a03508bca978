// A study's folder: study.json and a folder of each run in it.
//
//   {"format": 1, "plan": {...},
//    "runs": [{"variant": "optimizer.lr=0.01", "seed": 1, "folder": "optimizer.lr=0.01-seed-1",
//              "state": "done", "why": ""}, ...],
//    "result": {...}}    what --json prints, once all runs have ended
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/study/study_plan.h"

namespace millrace::study {

inline constexpr auto kStudyFile = "study.json";

enum class RunState {
  waiting,  // not begun, or begun and not ended
  done,
  failed,
};

/// One training of a study.
struct StudyRun {
  std::size_t variant = 0;  // position in variants_of
  std::int64_t seed = 1;
  std::string folder;  // in the study's; the run's own folder is in it, see own_folder
  RunState state = RunState::waiting;
  std::string why = {};  // it failed
};

struct Study {
  StudyPlan plan;
  std::vector<StudyRun> runs;  // seed by seed, so that variants can be compared early

  /// "optimizer.lr=0.01, seed 1"
  std::string title(const StudyRun& run) const;
  std::size_t count(RunState state) const;
};

/// All runs, none begun.
Study new_study(StudyPlan plan);

/// The study `was`, going on as `now`: with its threads, and runs for the seeds that `now` has
/// more. REQUIRES: differences(was.plan, now) is empty.
Study continued(const Study& was, const StudyPlan& now);

/// Of a folder; nothing if there is no study.json. Throws ConfigError if it cannot be read.
std::optional<Study> read_study(const std::filesystem::path& folder);
/// Throws Error.
void write_study(const std::filesystem::path& folder, const Study& study);

/// The newest run in a run's folder of the study, FOLDER/NAME-N, which `trainer run` has made;
/// empty: none yet.
std::filesystem::path own_folder(const std::filesystem::path& study_folder, const Study& study,
                                 const StudyRun& run);

}  // namespace millrace::study
