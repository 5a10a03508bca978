#pragma once

#include <string_view>

#include "base/options.h"
#include "dataflow/sample.h"

namespace millrace {

/// Reads and decodes a sample's file into RGB pixels of the annotated size, where there is one. Leaves alone a sample
/// that has its pixels already.
struct Decode {
  static constexpr std::string_view kName = "decode";
  bool strict = true;

  Sample operator()(Sample sample) const;

  void describe(Options& o) {
    o.add("strict", strict, "a JPEG with damaged or missing data cannot be used");
  }
};

}  // namespace millrace
