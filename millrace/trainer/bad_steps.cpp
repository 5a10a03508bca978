#include "millrace/trainer/bad_steps.h"

#include <fmt/format.h>

#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"

namespace millrace {
namespace {

constexpr std::int64_t kMostInARow = 10;  // before training gives up
constexpr std::int64_t kRecords = 3;      // of a run

/// Records a step; the end of the warning.
std::string keep(const StepRecord& record, const std::filesystem::path& run) {
  try {
    const auto folder = write_step_record(run / "diverged", record);
    return fmt::format("; to look into it: trainer run --replay {}", folder.string());
  } catch (const Error& problem) {
    return fmt::format("; it could not be kept: {}", problem.what());
  }
}

}  // namespace

void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run) {
  const auto kept = run.empty() || at.bad_steps >= kRecords ? "" : keep(record, run);
  at.bad_steps += 1;
  at.bad_in_a_row += 1;
  const auto message = fmt::format("step {}: {}", at.step + 1, record.rejected);
  if (at.bad_in_a_row >= kMostInARow)
    throw Error(
        fmt::format("{}; that was the {}th such step in a row: lower optimizer.lr, set "
                    "optimizer.clip_norm, or look at the data",
                    message, at.bad_in_a_row));
  spdlog::warn("{}; the step is skipped{}", message, kept);
}

}  // namespace millrace
