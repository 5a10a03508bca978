// Weights that ought not be used as they are, and what becomes of them.
#pragma once

#include <optional>
#include <string>

#include "millrace/weights/safetensors.h"

namespace millrace {

/// Whether weights are used although something speaks against it, and how a person asks for that.
struct Insistence {
  bool asked = false;
  std::string how = {};  // "--force-weights"; empty: it cannot be asked for

  /// Throws `Problem` with `what` and how to insist; where that was done, warns.
  template <class Problem>
  void object(const std::string& what) const {
    if (!asked) throw Problem(what + advice());
    warn(what);
  }

 private:
  std::string advice() const;
  void warn(const std::string& what) const;
};

/// "3 of its 1024 values are NaN or infinite"; nothing where all are finite.
std::optional<std::string> not_finite(const at::Tensor& value);

}  // namespace millrace
