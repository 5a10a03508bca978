// What may change in the configuration of a resumed training, and what must not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {

/// A key whose value differs; "nothing" if only one side has it.
struct ConfigChange {
  std::string key, was, is;  // data.root, values as TOML
  Origin origin;             // of the present value
};

/// All differences, by key.
std::vector<ConfigChange> config_changes(const Config& was, const Config& is);

/// Whether a key decides what a training computes, as its option says (Decides). False for keys
/// that decide where data is, how fast it comes, what is reported and where it is written. `key`:
/// dotted, as in `leaves`; `config`: a complete one that has it. True for unknown keys, such as
/// options of a plug-in that is not loaded.
bool decides_results(const std::string& key, const Config& config);

/// The training that resumes a checkpoint.
struct ResumedTraining {
  const Config& config;
  const std::vector<std::string>& classes;
  std::int64_t epoch_size;
  const Detector& model;
};

/// Logs every change. Throws ConfigError naming the key and what to do if the training cannot
/// resume: another model, optimizer or seed, other classes, a data set of another size, weights of
/// other shapes.
void check_resume(const Checkpoint& checkpoint, const ResumedTraining& training);

}  // namespace millrace
