// A resolved configuration: everything that a run is made from, checked before anything runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/options.h"
#include "coco/sample.h"
#include "dataflow/detection.h"

namespace millrace {

struct TrainOptions {
  double epochs = 12;
  std::int64_t max_steps = 0;  // > 0: stop there
  std::int64_t seed = 1;
  std::string precision = "fp32";
  bool deterministic = true;
  std::int64_t threads = 0;  // of the maths; 0: all cores
  std::string output = "runs";

  void describe(Options& o);
};

struct OptimizerOptions {
  double lr = 0.02;  // at `lr_batch` images a step; scaled linearly to the real number
  std::int64_t lr_batch = 16;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  double weight_decay_bias = -1;  // < 0: as weight_decay
  double weight_decay_norm = 0;
  double bias_lr_factor = 1;
  double clip_norm = 0;  // of all gradients together; 0: none

  void describe(Options& o);
};

/// The learning rate over time, in epochs so that it holds for any batch and data set.
struct ScheduleOptions {
  std::string kind = "step";                 // step | cosine | constant
  std::vector<double> milestones = {8, 11};  // epochs
  double gamma = 0.1;                        // factor at each milestone
  double warmup_epochs = 0;
  std::int64_t warmup_steps = 1000;  // used where warmup_epochs is 0
  double warmup_factor = 0.001;      // of the rate at step 0

  void describe(Options& o);
};

struct Recipe {
  Config tree;  // complete, each value with its origin
  std::vector<std::string> plugins;
  DataOptions data;
  std::vector<Config> stages;  // [[data.stages]], empty: the default pipeline
  bool has_sample = false;     // [data.sample] is there: make the data set on first use
  coco::SampleOptions sample;
  std::string model_name;
  std::string weights;  // empty: from random
  Config model;         // the [model] table
  TrainOptions train;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::vector<std::pair<std::string, Config>> callbacks;  // name, table
};

/// Checks every key of a configuration and fills in every default. Throws ConfigError.
Recipe resolve(Config tree);

}  // namespace millrace
