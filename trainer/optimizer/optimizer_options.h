// Options of the table [optimizer].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"

namespace millrace {

/// Options of [[optimizer.groups]]: settings for the parameters whose names match. The first
/// matching rule applies.
struct ParameterRule {
  std::string match;         // name pattern, e.g. "backbone.*"; * stands for any characters
  double lr_factor = 1;      // factor of the learning rate
  double weight_decay = -1;  // weight decay; negative = inherit
  bool frozen = false;       // true = not trained

  void describe(Options& o);

  /// Throws ConfigError for a frozen parameter with a learning rate or weight decay.
  void check(const Config& table) const;
};

/// Method that updates weights by their gradients.
enum class OptimizerType { sgd, adamw };
inline std::vector<std::string> value_names(OptimizerType) { return {"sgd", "adamw"}; }

/// Learning rate scaled per weight by the ratio of its norm to its gradient's norm: LARS, or LARC,
/// which limits the rate to `lr`.
enum class Trust { none, lars, larc };
inline std::vector<std::string> value_names(Trust) { return {"none", "lars", "larc"}; }

struct OptimizerOptions {
  OptimizerType type = OptimizerType::sgd;
  // Learning rate for `lr_batch` images per step; scaled linearly to the actual number.
  double lr = 0.02;
  std::int64_t lr_batch = 16;
  double momentum = 0.9;  // beta1 for AdamW
  bool nesterov = false;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-4;
  double weight_decay_bias = -1;  // weight decay of biases; negative = same as weight_decay
  double weight_decay_norm = 0;
  double bias_lr_factor = 1;
  double clip_norm = 0;   // maximum norm of all gradients together; 0 = no clipping
  double clip_value = 0;  // maximum absolute value of a gradient's element; 0 = no clipping
  Trust trust = Trust::none;
  double trust_coefficient = 0.001;
  std::int64_t accumulate = 1;        // batches per step
  std::vector<ParameterRule> groups;  // rules, read by take_optimizer

  void describe(Options& o);

  /// Throws ConfigError for values that contradict each other or have no effect.
  void check(const Config& table) const;

  /// Returns the learning rate for steps of `images_per_step` images.
  double scaled_lr(std::int64_t images_per_step) const {
    return lr * static_cast<double>(images_per_step) / static_cast<double>(lr_batch);
  }
};

}  // namespace millrace
