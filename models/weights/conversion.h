// Converts a weight file to another format, other names and another order of classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "millrace/models/weights/force_weights.h"
#include "millrace/models/weights/schemes.h"

namespace millrace {

struct Conversion {
  std::string from;  // scheme of the input; empty = names of a detector without schemes
  std::size_t tensors = 0;
  std::int64_t classes = 0;          // of its heads, without the background; 0 = no heads
  bool assumed_background = false;   // its position is the scheme's, as the file has none
  bool lost_card = false;            // `in` has a card that the format of `out` cannot store
  std::vector<std::string> unnamed;  // names unknown to the new scheme, which are kept
};

/// Reads `in` (formats.h) and writes it to `out` with the names, layouts and order of classes of
/// `scheme`. Rows that only the new order has (of an unused background) are zeros. Keeps the card
/// if the format of `out` can store it. Writes nothing and throws Error if `in` cannot be read, has
/// values that are not finite, has no name of any scheme (unless it has a card) or of `scheme`, or
/// if `out` cannot be written; throws ConfigError if weights cannot be written in its format.
Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme, const ForceWeights& force_weights = {});

}  // namespace millrace
