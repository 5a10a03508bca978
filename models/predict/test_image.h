// Images as evaluation sees them.
#pragma once

#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/test_time.h"
#include "millrace/models/predict/predictor.h"

namespace millrace {

/// An image, decoded and resized; `name` stands for it in messages if it has none of its own.
/// Throws DataError if it cannot be used.
Sample prepared(const PredictorImage& image, const TestTime& how, const std::string& name);

}  // namespace millrace
