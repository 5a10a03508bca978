// The report of `trainer doctor`, as text and as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/tools/data/ceilings.h"
#include "millrace/tools/data/checks.h"

namespace millrace::cli {

/// Counts of one split, or of the declared sources.
struct SplitFacts {
  std::string name, source;
  std::size_t images = 0, objects = 0, crowds = 0;
  std::optional<SizeCounts> sizes;  // nullopt if the size of resized images is not known
};

struct DoctorReport {
  std::vector<SplitFacts> splits;
  std::vector<coco::Finding> findings;
  std::vector<std::string> classes, table_splits;  // rows and columns of `table`
  ClassTable table;
  std::vector<std::string> unexamined;  // what was not examined

  /// Scores that perfect predictions would reach on a split; nullopt if the detector is not
  /// supported.
  struct Ceiling {
    std::string split;
    CeilingRule rule;
    Ceilings found;
  };
  std::optional<Ceiling> ceiling;

  void add(const std::string& where, const coco::Findings& found);
  /// Returns the number of findings of one severity.
  std::size_t kinds(coco::Severity severity) const;
};

std::string to_text(const DoctorReport& report);
Json to_json(const DoctorReport& report);

}  // namespace millrace::cli
