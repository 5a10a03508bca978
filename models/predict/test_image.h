// Prepares images for a model as evaluation does.
#pragma once

#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/test_time.h"
#include "millrace/models/predict/predictor.h"

namespace millrace {

/// Returns an image, decoded and resized. Messages use `name` if it has no name of its own. Throws
/// DataError if it cannot be used.
Sample prepared(const PredictorImage& image, const TestTime& how, const std::string& name);

}  // namespace millrace
