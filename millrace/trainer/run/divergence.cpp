#include "millrace/trainer/run/divergence.h"

#include <fmt/format.h>

#include <optional>

#include "millrace/base/errors.h"
#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostReturns = 5;

/// Where a checkpoint stands; nothing for one that is damaged.
std::optional<Position> position_of(const fs::path& checkpoint) try {
  return read_checkpoint(checkpoint).at;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

void give_up_diverged_checkpoints(const fs::path& folder, const Position& diverged) {
  if (diverged.returns == kMostReturns)
    throw Error(
        fmt::format("training diverged again at step {}, after {} returns to earlier checkpoints: "
                    "lower optimizer.lr, set optimizer.clip_norm, or look at the data",
                    diverged.step, kMostReturns));
  auto left = list_checkpoints(folder);
  const auto drop = [&] {
    fs::remove_all(left.back());
    left.pop_back();
  };
  while (!left.empty()) {
    const auto at = position_of(left.back());
    if (at && at->bad_in_a_row == 0) {
      if (at->returns < diverged.returns && left.size() > 1) drop();
      return;
    }
    drop();
  }
  throw Error(fmt::format(
      "training diverged at step {}, and there is no checkpoint from before to return "
      "to (callbacks.checkpoint.every): lower optimizer.lr, set optimizer.clip_norm, or "
      "look at the data",
      diverged.step));
}

std::string take_another_way(Position& at, const Position& diverged, const TrainOptions& train) {
  at.returns = diverged.returns + 1;
  at.bad_steps = diverged.bad_steps;
  at.rate_factor = diverged.rate_factor;
  std::string change = "with the data after those";
  if (train.on_return == "skip_data") {
    at.cursor = diverged.cursor;
    at.progress = diverged.progress;
  } else {
    at.rate_factor /= 2;
    change = fmt::format("at {:g} of the learning rate", at.rate_factor);
  }
  return fmt::format(
      "training diverged at step {}: it returns to step {} and goes on {} (return {} of at most "
      "{})",
      diverged.step, at.step, change, at.returns, kMostReturns);
}

}  // namespace millrace
