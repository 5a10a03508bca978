#include "millrace/dataflow/detection/test_time.h"

namespace millrace {

TestTime test_time(const DataOptions& data) {
  return {.short_side = data.settled_test_short_side(),
          .max_side = data.settled_test_max_side(),
          .style = data.resize_style,
          .reduced_decoding = data.reduced_decoding,
          .strict_decoding = data.strict_decoding,
          .max_pixels = data.max_pixels,
          .divisor = data.divisor};
}

}  // namespace millrace
