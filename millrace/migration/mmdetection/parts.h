// The parts of a recipe of MMDetection, each read in a file of its name and in this order: what one
// of them says, later ones need. All throw ConfigError naming file and line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "millrace/migration/files/foreign_config.h"
#include "millrace/migration/translation/epoch_length.h"
#include "millrace/migration/translation/translation.h"

namespace millrace::mmdetection {

/// Where versions 2.x and 3.x have what both have.
struct Layout {
  bool is_new = false;              // 3.x
  std::string train_cfg, test_cfg;  // of the model
  std::string train_set, val_set, test_set;
};

/// The model and its weights. Returns whether norms of it are trained.
bool read_model(Translation& t, const Layout& layout);

/// What later parts need to know of the data.
struct TrainingData {
  double times = 1;           // an epoch of theirs, in ours
  double images_per_gpu = 2;  // in a step
  std::string split;          // "train2017"; empty: it is in another layout than ours

  /// As a comment says it; empty for once.
  std::string repeated() const;
};
TrainingData read_data(Translation& t, const Layout& layout);

/// The optimizer. `gpus`: that the recipe is for; nothing: as it says itself. Returns the images of
/// a step on all of them.
double read_optimizer(Translation& t, double images_per_gpu, bool trains_norms,
                      std::optional<std::int64_t> gpus);

/// The length of the training and the rate. Returns whether they count in steps.
bool read_schedule(Translation& t, const Layout& layout, const TrainingData& data,
                   const EpochLength& epoch);

/// What happens beside the steps: evaluations, checkpoints, logs.
void read_run(Translation& t, const TrainingData& data, bool by_steps);

/// Notes what no part has read.
void note_rest(Translation& t, const Layout& layout, const ForeignConfig& config);

}  // namespace millrace::mmdetection
