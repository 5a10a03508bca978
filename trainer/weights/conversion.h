// Weights from one file into another: another format, other names, another order of classes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/weights/schemes.h"

namespace millrace {

struct Conversion {
  std::string from;  // the scheme of the file that was read
  std::size_t tensors = 0;
  std::int64_t classes = 0;  // of its heads, but for the background; 0: it has none
  bool assumed_background =
      false;  // neither names nor shapes told where it is: as its scheme has it
  std::vector<std::string> unnamed;  // for which the new scheme has no name: they keep theirs
};

/// Reads `in` (formats.h), and writes it as `out` with the names, layouts and order of classes of `scheme`. What the new
/// order has beyond the old one (rows of the background that nothing reads) are zeros. Throws Error where `in` cannot be
/// read or `out` not be written, ConfigError where `out` is of a format that is not written.
Conversion convert_weights(const std::filesystem::path& in, const std::filesystem::path& out,
                           const Scheme& scheme);

}  // namespace millrace
