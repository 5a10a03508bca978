// Checks of weights, which the user can override.
#pragma once

#include <optional>
#include <string>

#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// The user's decision to use weights in spite of a problem.
struct ForceWeights {
  bool asked = false;
  std::string how = {};  // "--force-weights"; empty = not possible

  /// Throws `Problem` with `what` and the way to force it; if `asked`, warns instead.
  template <class Problem>
  void throw_or_warn(const std::string& what) const {
    if (!asked) throw Problem(what + advice());
    warn(what);
  }

 private:
  std::string advice() const;
  void warn(const std::string& what) const;
};

/// Returns e.g. "3 of its 1024 values are NaN or infinite"; nullopt if all are finite.
std::optional<std::string> not_finite(const at::Tensor& value);

}  // namespace millrace
