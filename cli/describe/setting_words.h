// The words that --set may be followed by.
#pragma once

#include <string>
#include <vector>

namespace millrace::cli {

/// Every key of a configuration, "train.seed=", with those of all components that are registered;
/// one that takes one of few words also with each of these: "optimizer.type=sgd". Sorted.
std::vector<std::string> setting_words();

}  // namespace millrace::cli
