// Weights from a file into a model, by name, with a report of what did not fit.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/parameters.h"
#include "trainer/safetensors.h"

namespace millrace {

/// What loading did: a person should see it whenever anything was missing.
struct LoadReport {
  std::size_t loaded = 0;
  std::vector<std::string>
      missing;                      // of the model, not in the file: they keep their initial values
  std::vector<std::string> unused;  // of the file, not in the model
  std::vector<std::string>
      mismatched;  // "name: file (81, 1024), model (7, 1024)"; keep their initial values
};

/// Reads .safetensors, tensorpack's .npz (names and HWIO layout translated to ours; batch norm folded or not), or a
/// checkpoint folder. Throws Error where the file cannot be read or nothing at all in it fits.
LoadReport load_weights(const Parameters& parameters, const std::filesystem::path& file);

}  // namespace millrace
