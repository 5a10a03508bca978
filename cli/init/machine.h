// Properties of this machine, and of weight files on it, on which a first configuration depends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "millrace/tools/data/network.h"

namespace millrace::cli {

/// Returns the number of processors that this process may use, the free memory, and whether the
/// CUDA plug-in works.
advice::Machine this_machine();

/// Returns "2 cores" or "a GPU".
std::string text_of(const advice::Machine& machine);

/// Returns the file in data/weights or weights, relative to the current folder, that suits the
/// machine best; empty if not found.
std::string find_weights(const advice::Machine& machine);

/// Reads a weight file. Throws Error if it cannot be read; ConfigError if it has no ResNet.
advice::WeightFacts weight_facts(const std::string& file);

}  // namespace millrace::cli
