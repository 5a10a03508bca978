#include "millrace/trainer/run/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "millrace/base/errors.h"
#include "millrace/trainer/run/config_changes.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxReturns = 5;

/// Returns the position of a checkpoint; nullopt if it is damaged.
std::optional<Position> position_of(const fs::path& checkpoint) try {
  return read_checkpoint(checkpoint).at;
} catch (const Error&) {
  return std::nullopt;
}

/// Returns the first of the bad steps that ended a training.
std::int64_t first_bad_step(const Position& diverged) {
  return diverged.step - diverged.bad_in_a_row + 1;
}

/// Returns the last step whose checkpoint leads to a different result. Without skipping data, the
/// checkpoint right before the first bad step leads to the same bad steps: same weights, same data.
std::int64_t last_good_step(const Position& diverged, bool skips_data) {
  const auto last = first_bad_step(diverged) - (skips_data ? 1 : 2);
  return diverged.failing_step > 0 ? std::min(last, diverged.returned_to - 1) : last;
}

/// Removes the checkpoints that are newer than the newest good one up to step `last`, and returns
/// the step of that one. If not found, removes nothing and returns nullopt.
std::optional<std::int64_t> remove_newer_than_good(const fs::path& folder, std::int64_t last) {
  const auto all = list_checkpoints(folder);
  const auto good = std::ranges::find_if(all.rbegin(), all.rend(), [&](const auto& checkpoint) {
    if (step_of(checkpoint) > last) return false;
    const auto at = position_of(checkpoint);
    return at && at->bad_in_a_row == 0;
  });
  if (good == all.rend()) return std::nullopt;
  for (auto newer = all.rbegin(); newer != good; ++newer) fs::remove_all(*newer);
  return step_of(*good);
}

}  // namespace

std::string remove_diverged_for_resume(const fs::path& folder, const Position& diverged) {
  const auto last = last_good_step(diverged, /*skips_data=*/false);
  if (const auto good = remove_newer_than_good(folder, last))
    return fmt::format("--resume continues from step {}, the last good checkpoint", *good);
  return fmt::format(
      "no checkpoint of step {} or earlier is left from which --resume could continue; start a new "
      "run",
      last);
}

void go_further_back(Position& at, std::int64_t failing_step) {
  at.returned_to = at.step;
  at.failing_step = std::max(at.failing_step, failing_step);
}

void remove_diverged_checkpoints(const fs::path& folder, const Position& diverged,
                                 const TrainOptions& train) {
  const auto end_with = [&](const std::string& problem) {
    remove_newer_than_good(folder,
                           first_bad_step(diverged) - 2);  // --resume starts from a good one
    throw Error(problem);
  };
  if (diverged.returns == kMaxReturns)
    end_with(
        fmt::format("training diverged again at step {}, after {} returns to earlier checkpoints: "
                    "lower optimizer.lr, set optimizer.clip_norm, or check the data; --resume with "
                    "one of these changed counts returns from 0",
                    diverged.step, kMaxReturns));
  const auto last = last_good_step(diverged, train.on_return == OnReturn::skip_data);
  if (!remove_newer_than_good(folder, last))
    end_with(
        fmt::format("training diverged at step {}, and no checkpoint of step {} or earlier is left "
                    "to return to (callbacks.checkpoint.every and keep); lower optimizer.lr, set "
                    "optimizer.clip_norm, or check the data",
                    diverged.step, last));
}

std::string change_after_return(Position& at, const Position& diverged, const TrainOptions& train) {
  at.returns = diverged.returns + 1;
  at.bad_steps = diverged.bad_steps;
  at.rate_factor = diverged.rate_factor;
  go_further_back(at, std::max(diverged.failing_step, first_bad_step(diverged)));
  std::string change = "with the data after those steps";
  if (train.on_return == OnReturn::skip_data) {
    at.cursor = diverged.cursor;
    at.progress = diverged.progress;
  } else {
    at.rate_factor /= 2;
    change = fmt::format("at {:g} times the learning rate", at.rate_factor);
  }
  return fmt::format(
      "training diverged at step {}; returning to step {} and continuing {} (return {} of up to "
      "{})",
      diverged.step, at.step, change, at.returns, kMaxReturns);
}

std::string count_returns_anew(Checkpoint& checkpoint, const Config& config) {
  auto& at = checkpoint.at;
  if (at.returns == 0) return {};
  auto changes =
      config_changes(parse_config(checkpoint.config, "the checkpoint's config.toml"), config);
  std::erase_if(changes, [&](const auto& one) { return !decides_results(one.key, config); });
  if (changes.empty()) return {};
  at.returns = at.returned_to = at.failing_step = 0;
  const bool rate_changed = std::ranges::any_of(changes, [](const auto& one) {
    return one.key.starts_with("optimizer.") || one.key.starts_with("schedule.");
  });
  if (rate_changed) at.rate_factor = 1;
  return fmt::format(
      "{} has changed; returns after a divergence count from 0 again, at {:g} times the learning "
      "rate",
      changes.front().key, at.rate_factor);
}

}  // namespace millrace
