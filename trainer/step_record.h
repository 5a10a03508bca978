// A rejected training step, recorded to be replayed.
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
  StepInfo info;              // seed and step (those done before) count
  bool with_figures = false;  // the scalars have the detector's figures
  double lr = 0;
  LossScale loss_scale;                 // before the step
  std::map<std::string, double> hyper;  // changed hyper-parameters
  StepFigures scalars;
  std::string rejected;              // why it changed nothing
  std::vector<std::string> classes;  // by label
  std::string config;                // TOML
  NamedTensors model;
  std::vector<Batch> batches;
};

/// Writes it to `folder`/step-NNNNNN, counted from 1, and returns that folder; replaces an older
/// one. Throws Error.
std::filesystem::path write_step_record(const std::filesystem::path& folder,
                                        const StepRecord& record);

/// Throws Error naming the file that is missing or damaged.
StepRecord read_step_record(const std::filesystem::path& folder);

}  // namespace millrace
