// The parts of a recipe of detectron2, each read in a file of its name and in this order: what one
// of them says, later ones need. `t` has the recipe on top of the defaults, so that there is a
// value for each key. All throw ConfigError naming file and line.
#pragma once

#include <cstdint>
#include <optional>

#include "millrace/migration/files/value.h"
#include "millrace/migration/translation/epoch_length.h"
#include "millrace/migration/translation/translation.h"

namespace millrace::detectron2 {

/// The model and its weights. Returns whether it detects in several views of an image, which then
/// say the sizes in evaluation.
bool read_model(Translation& t);

/// What becomes of images before the model sees them.
void read_input(Translation& t, bool has_views);

/// The data sets. Returns the images of the training split if detectron2 knows it.
std::optional<std::int64_t> read_data(Translation& t);

/// The optimizer. `gpus`: that the recipe is for; nothing: as it says itself. Returns the images of
/// a step on all of them.
double read_optimizer(Translation& t, std::optional<std::int64_t> gpus);

/// The length of the training and the rate.
void read_schedule(Translation& t, const EpochLength& epoch);

/// What happens beside the steps: evaluations, checkpoints, the device. `recipe`: without defaults.
void read_run(Translation& t, const Value& recipe);

/// Notes what no part has read of the recipe, which comes without defaults.
void note_rest(Translation& t, const Value& recipe);

}  // namespace millrace::detectron2
