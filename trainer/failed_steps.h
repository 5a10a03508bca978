// Steps whose loss or gradient is not finite: what a training does, and their records for replay.
//
//   diverged/step-000123/record.json        inputs and results of the step
//                        model.safetensors  weights before the step
//                        batch-0.msgpack    its first batch without pixels (batch_codec.h)
//                        batch-0.rgb        its pixels
//                        config.toml
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/metrics.h"
#include "millrace/trainer/train_options.h"

namespace millrace {

/// A rejected step.
struct StepRecord {
  StepInfo info;              // inputs of the step; only seed and step (steps done before) are used
  bool with_metrics = false;  // true if the scalars include the detector's metrics
  double lr = 0;
  LossScale loss_scale;                 // loss scale before the step
  std::map<std::string, double> hyper;  // changed hyper-parameters
  StepMetrics scalars;
  std::string rejected;              // reason for which it was rejected
  std::vector<std::string> classes;  // class names by label
  std::string config;                // configuration as TOML
  NamedTensors model;
  std::vector<Batch> batches;
};

/// Writes the record to `folder`/step-NNNNNN, counted from 1, and returns that folder; replaces an
/// existing one. Throws Error.
std::filesystem::path write_step_record(const std::filesystem::path& folder,
                                        const StepRecord& record);

/// Reads a record. Throws Error naming a missing or damaged file.
StepRecord read_step_record(const std::filesystem::path& folder);

/// Thrown when a training ends because its last steps were rejected.
struct Diverged : Error {
  Diverged(const std::string& what, Position after) : Error(what), at(std::move(after)) {}
  Position at;  // position after the last rejected step
};

/// Counts a rejected step in `at`, records the first three of a run in `run`/diverged for --replay
/// (unless `run` is empty), and warns about these and about the first of consecutive ones. Throws
/// Diverged for the tenth in a row, unless the training then returns to a checkpoint.
void reject_step(Position& at, const StepRecord& record, const std::filesystem::path& run,
                 const TrainOptions& train);

/// Called after the last step. Throws Diverged if the last steps were rejected and either they are
/// more than half of all steps or no step was taken.
void check_has_learned(const Position& at);

/// Returns true if a training stops here to return to a checkpoint.
bool has_diverged(const Position& at, const TrainOptions& train);

}  // namespace millrace
