// Runs the trainings of a study: `trainer run` as child processes.
#pragma once

#include <cstddef>
#include <filesystem>

#include "millrace/study/study_folder.h"

namespace millrace::study {

/// How trainings are started.
struct Launch {
  std::filesystem::path program;  // trainer
  std::filesystem::path folder;   // of the study
  std::size_t jobs = 1;           // at once
};

/// Trains what is not done yet, at most `jobs` runs at once, and keeps study.json up to date. Runs
/// that have begun go on from their newest checkpoint, failed ones are tried again. A run that
/// fails is logged with the end of its output, and the others go on. After a signal (StopSignals,
/// which must exist) no run begins, those that train save their state and end. Children never
/// outlive this process. Throws Error if a program cannot be started or study.json not be written.
void run_trainings(Study& study, const Launch& launch);

/// The file with a run's standard output and standard error.
std::filesystem::path output_file(const std::filesystem::path& study_folder, const StudyRun& run);

}  // namespace millrace::study
