// The cost of the limit of detections as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/coco/evaluation/limit_cost.h"

namespace millrace {

inline nlohmann::ordered_json limit_json(const coco::LimitCost& cost) {
  return {{"max_detections", cost.limit},
          {"images", cost.images},
          {"images_beyond", cost.beyond},
          {"best_ap", cost.best_ap},
          {"text", coco::text(cost)}};
}

}  // namespace millrace
