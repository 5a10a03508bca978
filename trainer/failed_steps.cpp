#include "millrace/trainer/failed_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "millrace/base/log.h"
#include "millrace/base/text.h"

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

void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run,
                 const TrainOptions& train) {
  const auto kept = run.empty() || at.bad_steps >= kRecords ? "" : keep(record, run);
  at.bad_steps += 1;
  at.bad_in_a_row += 1;
  const auto message = fmt::format("step {}: {}", at.step + 1, record.rejected);
  if (at.bad_in_a_row >= kMostInARow && !train.returns()) {
    auto after = at;
    after.step += 1;
    throw Diverged(fmt::format("{}; that was the {}th such step in a row: lower optimizer.lr, set "
                               "optimizer.clip_norm, or look at the data",
                               message, at.bad_in_a_row),
                   std::move(after));
  }
  const bool is_news = at.bad_in_a_row == 1 || !kept.empty();
  spdlog::log(is_news ? spdlog::level::warn : spdlog::level::debug, "{}; the step is skipped{}",
              message, kept);
}

void check_has_learned(const Position& at) {
  const bool took_none = at.bad_in_a_row + at.overflow_steps >= at.step;
  // One that only looked for its loss scale has lost nothing.
  if (at.bad_in_a_row == 0 || (!took_none && 2 * at.bad_in_a_row <= at.step)) return;
  const auto why = took_none ? "every step was skipped"
                             : fmt::format("the last {} were skipped", at.bad_in_a_row);
  throw Diverged(
      fmt::format("training ended after step {}, and {}: lower optimizer.lr, set "
                  "optimizer.clip_norm, or look at the weights that it began with and at the data",
                  at.step, why),
      at);
}

bool has_diverged(const Position& at, const TrainOptions& train) {
  return train.returns() && at.bad_in_a_row >= kMostInARow;
}

bool is_out_of_memory(const std::exception& problem) {
  if (dynamic_cast<const std::bad_alloc*>(&problem)) return true;
  const std::string_view what = problem.what();
  return what.find("DefaultCPUAllocator: ") != what.npos ||
         what.find("out of memory") != what.npos || what.find("std::bad_alloc") != what.npos;
}

std::string out_of_memory_text(const std::vector<Batch>& batches) {
  std::string text;
  for (const auto& batch : batches) {
    text += text.empty() ? "not enough memory for " : " and ";
    text += fmt::format("a batch of {} padded to {} x {} pixels (",
                        counted(std::ssize(batch.images), "image"), batch.width, batch.height);
    constexpr std::size_t kNamed = 8;
    for (std::size_t i = 0; i < std::min(kNamed, batch.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "image " : ", ", batch.images[i].image_id);
    text += batch.size() > kNamed ? ", ...)" : ")";
  }
  return fmt::format("{}: {}", text, kLessMemory);
}

}  // namespace millrace
