#include "millrace/trainer/failed_steps.h"

#include <fmt/format.h>

#include "millrace/base/log.h"

namespace millrace {
namespace {

constexpr std::int64_t kMaxBadInARow = 10;  // number of consecutive bad steps that ends training
constexpr std::int64_t kRecords = 3;        // maximum number of records per run

/// Records a step and returns the end of the warning about it.
std::string keep(const StepRecord& record, const std::filesystem::path& run) {
  try {
    const auto folder = write_step_record(run / "diverged", record);
    return fmt::format("; to repeat it: trainer run --replay {}", folder.string());
  } catch (const Error& problem) {
    return fmt::format("; cannot record it: {}", problem.what());
  }
}

}  // namespace

void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run,
                 const TrainOptions& train) {
  const auto kept = run.empty() || at.bad_steps >= kRecords ? "" : keep(record, run);
  at.bad_steps += 1;
  at.bad_in_a_row += 1;
  const auto message = fmt::format("step {}: {}", at.step + 1, record.rejected);
  if (at.bad_in_a_row >= kMaxBadInARow && !train.returns()) {
    auto after = at;
    after.step += 1;
    throw Diverged(fmt::format("{}; this is the {}th such step in a row: lower optimizer.lr, set "
                               "optimizer.clip_norm, or check the data",
                               message, at.bad_in_a_row),
                   std::move(after));
  }
  const bool is_news = at.bad_in_a_row == 1 || !kept.empty();
  log_formatted(is_news ? spdlog::level::warn : spdlog::level::debug, "{}; skipped the step{}",
                fmt::make_format_args(message, kept));
}

void check_has_learned(const Position& at) {
  const bool took_none = at.bad_in_a_row + at.overflow_steps >= at.step;
  // A training that only searched for its loss scale has lost nothing.
  if (at.bad_in_a_row == 0 || (!took_none && 2 * at.bad_in_a_row <= at.step)) return;
  const auto why = took_none ? "every step was skipped"
                             : fmt::format("the last {} steps were skipped", at.bad_in_a_row);
  throw Diverged(fmt::format("training ended after step {}, but {}: lower optimizer.lr, set "
                             "optimizer.clip_norm, or check the initial weights and the data",
                             at.step, why),
                 at);
}

bool has_diverged(const Position& at, const TrainOptions& train) {
  return train.returns() && at.bad_in_a_row >= kMaxBadInARow;
}

}  // namespace millrace
