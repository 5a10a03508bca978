// Weights from one file into another: another format, other names, another order of classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "millrace/weights/schemes.h"
#include "millrace/weights/soundness.h"

namespace millrace {

struct Conversion {
  std::string from;  // the scheme of the file that was read
  std::size_t tensors = 0;
  std::int64_t classes = 0;  // classes of its heads, without the background; 0: it has none
  // Neither names nor shapes told where it is: as its scheme has it
  bool assumed_background = false;
  // `out` is of a format that cannot say what the weights were trained as, `in` did
  bool lost_card = false;
  std::vector<std::string> unnamed;  // for which the new scheme has no name: they keep theirs
};

/// Reads `in` (formats.h), and writes it as `out` with the names, layouts and order of classes of
/// `scheme`. What the new order has beyond the old one (rows of the background that nothing reads)
/// are zeros. What `in` says of the model (model_card.h), `out` says too where its format can.
/// Throws Error where `in` cannot be read, has values that are not finite, or `out` cannot be
/// written, ConfigError where `out` is of a format that is not written.
Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme, const Insistence& insistence = {});

}  // namespace millrace
