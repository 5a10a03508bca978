// The `[optimizer]` table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

/// One [[optimizer.groups]]: for the parameters whose names match. The first rule that matches
/// counts.
struct ParameterRule {
  std::string match;         // a name; * stands for any characters, "backbone.*"
  double lr_factor = 1;      // of the rate
  double weight_decay = -1;  // < 0: as without the rule
  bool frozen = false;       // not trained: no gradient

  void describe(Options& o);

  /// Throws ConfigError for a frozen parameter with a rate or a decay.
  void check(const Config& table) const;
};

/// How gradients become new weights.
enum class OptimizerType { sgd, adamw };
inline std::vector<std::string> value_names(OptimizerType) { return {"sgd", "adamw"}; }

/// Whether the rate of a weight follows its norm over its gradient's: LARS, or LARC, whose rate is
/// at most `lr`.
enum class Trust { none, lars, larc };
inline std::vector<std::string> value_names(Trust) { return {"none", "lars", "larc"}; }

struct OptimizerOptions {
  OptimizerType type = OptimizerType::sgd;
  double lr = 0.02;  // at `lr_batch` images a step; scaled linearly to the real number
  std::int64_t lr_batch = 16;
  double momentum = 0.9;  // AdamW: beta1
  bool nesterov = false;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-4;
  double weight_decay_bias = -1;  // < 0: as weight_decay
  double weight_decay_norm = 0;
  double bias_lr_factor = 1;
  double clip_norm = 0;   // of all gradients together; 0: none
  double clip_value = 0;  // of each number of a gradient; 0: none
  Trust trust = Trust::none;
  double trust_coefficient = 0.001;
  std::int64_t accumulate = 1;        // batches a step
  std::vector<ParameterRule> groups;  // read by take_optimizer

  void describe(Options& o);

  /// Throws ConfigError for values that contradict each other or change nothing.
  void check(const Config& table) const;

  /// The rate for steps of so many images.
  double scaled_lr(std::int64_t images_per_step) const {
    return lr * static_cast<double>(images_per_step) / static_cast<double>(lr_batch);
  }
};

}  // namespace millrace
