// What a first configuration is chosen for: this machine, and the weights that it has.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/tools/data/network.h"

namespace millrace::cli {

/// Processors that this process may use, free memory, and whether the CUDA plug-in can compute.
advice::Machine this_machine();

/// "2 cores, 20 GiB of memory", "a GPU".
std::string text_of(const advice::Machine& machine);

/// The file in data/weights or weights, from the current folder, that suits the machine best; empty
/// if there is none.
std::string find_weights(const advice::Machine& machine);

/// Reads a file of weights. Throws Error if it cannot be read; ConfigError if it is of no ResNet.
advice::WeightFacts weight_facts(const std::string& file);

}  // namespace millrace::cli
