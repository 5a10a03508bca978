// Loads weights from a file into a model, by name, with a report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "millrace/models/weights/force_weights.h"
#include "millrace/models/weights/parameters.h"

namespace millrace {

/// The result of loading, to be reported to the user if anything is missing.
struct LoadReport {
  std::string scheme;               // scheme of the file's names (schemes.h)
  std::size_t loaded = 0;           // number of parameters
  std::vector<std::string> unused;  // in the file but not in the model
  // Parameters that keep their initial values:
  std::vector<std::string> missing;        // in the model but not in the file
  std::vector<std::string> mismatched;     // "name: file (81, 1024), model (7, 1024)"
  std::vector<std::string> other_classes;  // heads, "name: file 80 classes, model 6"
  std::vector<std::string> new_classes;    // the model's classes that the file lacks
  std::vector<std::string> initial;        // names of these, also of partly loaded ones
  std::vector<std::string> notes;          // messages for the user

  /// Returns everything that keeps its initial values.
  std::vector<std::string> not_loaded() const;
};

struct WeightUse {
  std::vector<std::string> classes = {};  // the model's, in label order; empty = as in the file
  ForceWeights force_weights = {};        // for weights that are not finite
};

/// Loads .safetensors, .pth, .pkl, .npz or a checkpoint folder (weights/formats.h), with the names
/// of torchvision, detectron2, tensorpack ... (weights/schemes.h). Rows of heads are put into the
/// model's order of classes: by name if both sides have names, so that classes unknown to the file
/// keep their initial values. Throws Error if the file cannot be read, nothing in it fits, or
/// values are NaN or infinite.
LoadReport load_weights(const Parameters& parameters, const std::filesystem::path& file,
                        const WeightUse& use = {});

/// Throws Error unless all of the model's `parameters` parameters were loaded.
void check_all_loaded(const LoadReport& report, std::size_t parameters, const std::string& file);

/// Throws Error, or warns if forced, if parameters in `frozen` keep initial values,
/// which no training would change.
void check_frozen_loaded(const LoadReport& report, const std::vector<std::string>& frozen,
                         const std::string& file, const ForceWeights& force_weights);

/// Logs a report on a model before its training: counts and first names; at debug level all names.
void log_report(const LoadReport& report, const Parameters& parameters, const std::string& file);

}  // namespace millrace
