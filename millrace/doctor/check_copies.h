// Photos that are in a data set more than once.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "millrace/doctor/check_images.h"
#include "millrace/doctor/findings.h"

namespace millrace {

/// A split and the marks of its files.
struct MarkedSplit {
  std::string name;
  DataSplit split;
  std::vector<FileMark> marks;
};

/// Finds files of the same bytes, in one split and in several. Reads those that their marks do not
/// tell apart, by all threads of the caller's arena.
void check_copies(std::span<const MarkedSplit> splits, coco::Findings& findings);

}  // namespace millrace
