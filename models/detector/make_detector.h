// Makes detectors from the [model] table.
#pragma once

#include <memory>
#include <string>

#include "millrace/models/detector/detector.h"

namespace millrace {

/// Returns [model] without the keys that every detector has: type, weights and force_weights.
Config own_options(const Config& model_table);

/// Makes the detector of that name from [model]. Throws ConfigError for invalid options.
std::unique_ptr<Detector> make_detector(const std::string& name, const Config& table,
                                        const ModelContext& context);

}  // namespace millrace
