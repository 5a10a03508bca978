// A rejected training step, recorded for replay.
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
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/checkpoint/position.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

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

}  // namespace millrace
