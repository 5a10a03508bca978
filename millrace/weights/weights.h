// Weights from a file into a model, by name, with a report of what did not fit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "millrace/weights/parameters.h"
#include "millrace/weights/soundness.h"

namespace millrace {

/// What loading did: a person should see it whenever anything was missing.
struct LoadReport {
  std::string scheme;      // whose names the file has (schemes.h)
  std::size_t loaded = 0;  // parameters
  // In the model and not in the file: they keep their initial values
  std::vector<std::string> missing;
  std::vector<std::string> unused;  // in the file and not in the model
  // "name: file (81, 1024), model (7, 1024)"; keep their initial values
  std::vector<std::string> mismatched;
  // "name: file 80 classes, model 6"; heads that keep their initial values
  std::vector<std::string> other_classes;
  std::vector<std::string> new_classes;  // the model's: their rows keep their initial values
  std::vector<std::string> notes;        // sentences on what was done or is to be done

  /// What of the model keeps its initial values.
  std::vector<std::string> not_loaded() const;
};

/// How weights are wanted.
struct WeightUse {
  // The model's, in label order; empty: as the file has them
  std::vector<std::string> classes = {};
  Insistence insistence = {};  // on weights that are not finite
};

/// Reads .safetensors, .pth, .pkl, .npz or a checkpoint folder (weights/formats.h), with names of
/// ours, torchvision, detectron2, tensorpack ... (weights/schemes.h). Rows of heads are put into
/// the model's order of classes: by name where both sides have names, so that classes which the
/// file does not know keep their initial values. Throws Error where the file cannot be read,
/// nothing at all in it fits, or values are NaN or infinite.
LoadReport load_weights(const Parameters& parameters, const std::filesystem::path& file,
                        const WeightUse& use = {});

/// Tells of a report: counts and first names; on the log's debug level all names.
void log_report(const LoadReport& report, std::size_t parameters, const std::string& file);

}  // namespace millrace
