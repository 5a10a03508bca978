// One start of a run, as the run's record tells of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "millrace/trainer/run/run_folder.h"
#include "millrace/trainer/run/run_record.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

class RunStart {
 public:
  /// In a folder that is new, or has the record of earlier starts. Throws ConfigError where that
  /// cannot be read.
  RunStart(const RunFolder& folder, const RunIdentity& mine);

  /// Whether the last start was done after that step, with all that it was to do.
  bool was_done_after(std::int64_t step) const { return record_.done_after() == step; }

  /// Adds this start to the record, with what it is made with (see run_facts.h). `program`: its
  /// name and version; `ranks`: of rank_facts. Throws Error.
  void begin(std::int64_t from_step, const std::filesystem::path& config_file,
             const std::string& program, nlohmann::ordered_json ranks);

  /// Adds how it ended. That it cannot be written is a warning: what was trained is saved.
  void end(const TrainEnd& end);

 private:
  std::filesystem::path folder_;
  RunRecord record_;
};

}  // namespace millrace
