#include "millrace/migration/translation/anchors_of.h"

#include <fmt/format.h>

#include <cmath>

namespace millrace {

void put_anchor_sizes(Translation& translation, const std::vector<std::vector<double>>& levels,
                      const Found& from, const std::string& how) {
  const auto scales = levels.front().size();
  if (levels.size() != 5)
    from.fail(fmt::format("the pyramid has five levels, here are sizes for {}", levels.size()));
  std::vector<double> sizes;
  for (const auto& level : levels) {
    bool fits = level.size() == scales && scales > 0;
    for (std::size_t i = 0; fits && i < scales; ++i) {
      const double wanted =
          level.front() * std::exp2(static_cast<double>(i) / static_cast<double>(scales));
      fits = std::abs(level[i] / wanted - 1) < 2e-3;
    }
    if (!fits)
      from.fail("a level has one size, or several evenly within an octave: size x 2^(i/n)");
    sizes.push_back(level.front());
  }
  translation.put("model.anchors.sizes", sizes, from, how);
  translation.put("model.anchors.scales_per_octave", static_cast<double>(scales), from);
}

}  // namespace millrace
