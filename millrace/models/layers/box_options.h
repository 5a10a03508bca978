// How boxes are computed with, wherever a detector encodes, decodes or compares them.
#pragma once

#include <array>

#include "millrace/base/options.h"
#include "millrace/models/ops/boxes.h"

namespace millrace {

struct BoxOptions {
  double offset = 0;
  double max_log_scale = 4.135166556742356;

  void describe(Options& o) {
    o.add("boxes.offset", offset, "added to box sides; 1 is the legacy convention",
          {.min = 0, .max = 1})
        .decides(OfWeights::meaning);
    o.add("boxes.scale_clamp", max_log_scale, "dw and dh are cut there", {.min = 0})
        .decides(OfWeights::meaning);
  }

  BoxCoder coder(const std::array<double, 4>& weights = {1, 1, 1, 1}) const {
    return {weights, max_log_scale, offset};
  }
};

}  // namespace millrace
