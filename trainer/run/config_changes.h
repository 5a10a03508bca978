// Differences between the configuration of a resumed training and that of its checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/checkpoint/checkpoint.h"

namespace millrace {

/// A key whose value differs; "nothing" = only the other side has the key.
struct ConfigChange {
  std::string key, was, is;  // key such as data.root, and both values as TOML
  Origin origin;             // origin of the current value
};

/// Returns all differences, by key.
std::vector<ConfigChange> config_changes(const Config& was, const Config& is);

/// Returns true if a key affects the results of a training, as declared by its option (Affects).
/// False for keys that set where data is, how fast it is loaded, what is reported and where it is
/// written. `key`: dotted, as in `leaves`. `config`: a complete configuration that contains the
/// key. True for unknown keys, such as options of a plug-in that is not loaded.
bool decides_results(const std::string& key, const Config& config);

/// The training that resumes a checkpoint.
struct ResumedTraining {
  const Config& config;
  const std::vector<std::string>& classes;
  std::int64_t epoch_size;
  const Detector& model;
};

/// Logs every change. Throws ConfigError naming the key and a remedy if the training cannot resume:
/// another model, optimizer or seed, other classes, a data set of another size, or weights of other
/// shapes.
void check_resume(const Checkpoint& checkpoint, const ResumedTraining& training);

}  // namespace millrace
