// A training step that was not finite, kept whole so that it can be looked into.
//
//   diverged/step-000123/record.json        what the step depends on, and what came of it
//                        model.safetensors  weights before the step, which it has not changed
//                        batch-0.msgpack    its first batch without the pixels (batch_codec.h)
//                        batch-0.rgb        their pixels
//                        config.toml
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/detector/position.h"
#include "millrace/trainer/metrics.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

struct StepRecord {
  StepInfo info;              // of it seed and step: those done before
  bool with_figures = false;  // the detector was asked for them: they are among the scalars
  double lr = 0;
  LossScale loss_scale;                 // before the step
  std::map<std::string, double> hyper;  // parameters of a training that may change
  StepFigures scalars;                  // what came of it
  std::string rejected;                 // why it changed nothing
  std::vector<std::string> classes;     // names in label order
  std::string config;                   // TOML
  NamedTensors model;
  std::vector<Batch> batches;
};

/// Writes it to `folder`/step-NNNNNN, the number of the step counted from 1, and returns that.
/// Replaces an older one of the same step. Throws Error.
std::filesystem::path write_step_record(const std::filesystem::path& folder,
                                        const StepRecord& record);

/// Throws Error naming the file that is missing or damaged.
StepRecord read_step_record(const std::filesystem::path& folder);

}  // namespace millrace
