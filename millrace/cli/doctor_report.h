// What `trainer doctor` has found out, as text and as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/doctor/check_classes.h"
#include "millrace/doctor/check_sizes.h"
#include "millrace/doctor/findings.h"

namespace millrace::cli {

/// One split, or the declared sources, in figures.
struct SplitFacts {
  std::string name, source;
  std::size_t images = 0, objects = 0, crowds = 0;
  std::optional<SizeCounts> sizes;  // nothing where nobody knows the size that images get
};

/// A finding and the splits that it is of.
struct LocatedFinding {
  std::string where;
  coco::Finding finding;
};

struct DoctorReport {
  std::vector<SplitFacts> splits;
  std::vector<LocatedFinding> findings;
  std::vector<std::string> classes, table_splits;  // the rows and columns of `table`
  ClassTable table;
  std::vector<std::string> unexamined;  // what nobody has looked at, a sentence each

  void add(const std::string& where, const coco::Findings& found);
  /// The findings of one severity.
  std::size_t kinds(coco::Severity severity) const;
};

std::string to_text(const DoctorReport& report);
Json to_json(const DoctorReport& report);

}  // namespace millrace::cli
