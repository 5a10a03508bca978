#pragma once

#include <string_view>
#include <vector>

#include "dataflow/buffer_pool.h"
#include "dataflow/data_options.h"
#include "dataflow/sample.h"

namespace millrace {

/// Puts samples side by side into one batch, each in the top left corner of its slot, zero around it.
struct Pad {
  static constexpr std::string_view kName = "pad";
  std::int64_t divisor = 32;  // slots are multiples of so many pixels
  BufferPool pool;            // of the batches' pixels

  static Pad from(const DataOptions& data) { return {.divisor = data.divisor}; }

  Batch operator()(std::vector<Sample> samples) const;

  void describe(Options& o) {
    o.add("divisor", divisor, "sides are rounded up to a multiple of it",
          {.min = 1, .max = 1024, .unit = "pixels"});
  }
};

}  // namespace millrace
