// The length of an epoch, for recipes that count in steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "millrace/migration/translation/translation.h"

namespace millrace {

/// Images of COCO's train2017: all, and those with an object.
constexpr std::int64_t kCocoTrain2017 = 118287;
constexpr std::int64_t kCocoTrain2017WithObjects = 117266;

struct EpochLength {
  double images_per_step = 0;
  std::optional<std::int64_t> images;  // of the training split; nothing: nobody has said it

  /// So many steps as epochs. Throws ConfigError naming `from` if nobody has said `images`.
  double epochs(double steps, const Found& from) const;
  /// What epochs() computes, after the number of steps: "x 16 images / 117266".
  std::string how() const;
};

/// Rounds to as many decimals as tell single steps apart: 12.2798.
double rounded_epochs(double epochs);

}  // namespace millrace
