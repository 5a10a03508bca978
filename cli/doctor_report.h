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
  std::optional<SizeCounts> sizes;  // nothing where the size of resized images is not known
};

/// A finding and the split it is about.
struct LocatedFinding {
  std::string where;
  coco::Finding finding;
};

struct DoctorReport {
  std::vector<SplitFacts> splits;
  std::vector<LocatedFinding> findings;
  std::vector<std::string> classes, table_splits;  // the rows and columns of `table`
  ClassTable table;
  std::vector<std::string> unexamined;  // what was not looked at

  /// What perfect answers would score on a split; nothing: nobody knows of this model.
  struct Ceiling {
    std::string split;
    CeilingRule rule;
    Ceilings found;
  };
  std::optional<Ceiling> ceiling;

  void add(const std::string& where, const coco::Findings& found);
  /// The number of findings of one severity.
  std::size_t kinds(coco::Severity severity) const;
};

std::string to_text(const DoctorReport& report);
Json to_json(const DoctorReport& report);

}  // namespace millrace::cli
