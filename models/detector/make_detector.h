// Makes detectors and calls them: what a detector throws or returns wrongly becomes an Error with
// its name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "millrace/models/detector/detector.h"

namespace millrace {

/// [model] without the keys that every detector has: type, weights and force_weights.
Config own_options(const Config& model_table);

/// Makes the detector of that name from [model]. Throws ConfigError for options that it refuses.
std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context);

/// A detector's losses. Throws Error for losses that cannot be trained with: none at all, undefined
/// tensors, more than one number, or (with gradients enabled) none that a trained parameter has a
/// part in.
Losses losses_of(Detector& detector, const Batch& batch, const StepInfo& step);

/// What a detector finds in each image of a batch. It is given images of one padded size at a time,
/// each padded as it would be alone (Batch::divisor), so that results do not depend on the other
/// images. Computes in its detect_type. Throws Error for another number of images, labels that are
/// no class, boxes and scores that are not finite, and masks of another size than the image. Fills
/// `notes`, if there are any; the detector must give them.
std::vector<std::vector<DetectedObject>> detect_with(Detector& detector, const Batch& batch,
                                                     DetectionNotes* notes = nullptr);

/// A detector's nodes (Detector::add_to). Throws Error if it cannot be exported.
onnx::Objects nodes_of(const Detector& detector, const onnx::Images& images, bool pasted);

/// The device of a detector's parameters; the CPU without any.
at::Device device_of(const Detector& detector);

/// A detector's warnings before a training. Throws ConfigError if it refuses.
std::vector<std::string> warnings_of(const Detector& detector, const TrainingFacts& facts);

/// Tells a detector that its parameters were overwritten.
void tell_parameters_changed(Detector& detector);

}  // namespace millrace
