// A detector with the weights of a training run, as eval and predict want it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/detector.h"
#include "trainer/recipe.h"

namespace millrace::cli {

/// Builds the recipe's detector and loads `weights` into it. Throws Error where they do not give the
/// model every one of its parameters: what is left at random would make every figure meaningless.
std::unique_ptr<Detector> trained_detector(const Recipe& recipe,
                                           const std::vector<std::string>& classes,
                                           const std::string& weights);

}  // namespace millrace::cli
