#include "millrace/models/weights/force_weights.h"

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include "millrace/base/log.h"

namespace millrace {

std::string ForceWeights::advice() const {
  return how.empty() ? "" : "; to use these weights anyway: " + how;
}

void ForceWeights::warn(const std::string& what) const {
  log_warning("{}; used anyway ({})", what, how);
}

std::optional<std::string> not_finite(const at::Tensor& value) {
  if (!value.is_floating_point()) return std::nullopt;
  const auto finite = at::isfinite(value);
  if (finite.all().item<bool>()) return std::nullopt;
  return fmt::format("{} of its {} values are NaN or infinite",
                     value.numel() - finite.sum().item<std::int64_t>(), value.numel());
}

}  // namespace millrace
