// Weights from one file into another: another format, names, order of classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "millrace/models/weights/schemes.h"
#include "millrace/models/weights/soundness.h"

namespace millrace {

struct Conversion {
  std::string from;  // the scheme of the file that was read; empty: of a detector that has none
  std::size_t tensors = 0;
  std::int64_t classes = 0;          // of its heads, without the background; 0: no heads
  bool assumed_background = false;   // its place is that of the scheme: the file does not say
  bool lost_card = false;            // `in` has a card (model_card.h), the format of `out` cannot
  std::vector<std::string> unnamed;  // unknown to the new scheme: they keep their names
};

/// Reads `in` (formats.h), and writes it as `out` with the names, layouts and order of classes of
/// `scheme`. Rows that only the new order has (of a background that nothing reads) are zeros. Keeps
/// the card, if the format of `out` can. Writes nothing and throws Error if `in` cannot be read,
/// has values that are not finite or no name of any scheme (unless a card makes them ours) or of
/// `scheme`, or if `out` cannot be written; ConfigError if weights are not written in its format.
Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme, const Insistence& insistence = {});

}  // namespace millrace
