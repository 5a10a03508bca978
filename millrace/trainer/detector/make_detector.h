// How a training makes its detector and calls it: what a detector throws, or gives back wrong, is
// told with its name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "millrace/trainer/detector/detector.h"

namespace millrace {

/// What [model] says besides the keys that every detector has: name, weights and force_weights.
Config own_options(const Config& model_table);

/// Makes the detector of that name from [model]. Throws ConfigError for options that it refuses,
/// Error naming it for anything else that its factory throws.
std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context);

/// A detector's losses. What it throws becomes an Error that begins with its title; so do losses
/// that cannot be trained with: none at all, an undefined tensor, more than one number, or (where
/// gradients are worked out) not one that a trained parameter has a part in.
Losses losses_of(Detector& detector, const Batch& batch, const StepInfo& step);

/// What a detector finds in each image of a batch. It is given images of one padded size at a time,
/// each padded as it would be alone (Batch::divisor): what is found in an image does not depend on
/// the others. What it throws becomes an Error that begins with its title; so do answers for fewer
/// or more images, labels that are no class, boxes and scores that are not finite, and masks of
/// another size than the image.
std::vector<std::vector<DetectedObject>> detect_with(Detector& detector, const Batch& batch);

/// What a detector warns of before a training. Throws ConfigError where it refuses; anything else
/// that it throws becomes an Error that begins with its title.
std::vector<std::string> warnings_of(const Detector& detector, const TrainingFacts& facts);

/// Tells a detector that its parameters were overwritten; what it throws becomes an Error that
/// begins with its title.
void tell_parameters_changed(Detector& detector);

}  // namespace millrace
