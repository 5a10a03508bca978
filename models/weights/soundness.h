// Weights that should not be used as they are, unless the user insists.
#pragma once

#include <optional>
#include <string>

#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// Whether the user insists on weights in spite of a problem.
struct Insistence {
  bool asked = false;
  std::string how = {};  // "--force-weights"; empty: impossible

  /// Throws `Problem` with `what` and how to insist; if `asked`, warns instead.
  template <class Problem>
  void object(const std::string& what) const {
    if (!asked) throw Problem(what + advice());
    warn(what);
  }

 private:
  std::string advice() const;
  void warn(const std::string& what) const;
};

/// "3 of its 1024 values are NaN or infinite"; nothing if all are finite.
std::optional<std::string> not_finite(const at::Tensor& value);

}  // namespace millrace
