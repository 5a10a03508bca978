// The classes of a data set over its splits: which there are, and how many objects each has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/doctor/findings.h"

namespace millrace {

/// A split as training or evaluation would see it.
struct NamedSplit {
  std::string name;
  DataSplit data;  // kNoCategory is the id of a class that is not there
};

/// Counts of one class in one split; crowds do not count.
struct ClassCount {
  std::uint64_t objects = 0, images = 0;
};

/// Row k: class k in each split.
using ClassTable = std::vector<std::vector<ClassCount>>;
ClassTable count_classes(std::span<const NamedSplit> splits);

/// Checks the categories of one split: ids, names, and whether each class is among them.
void check_categories(const NamedSplit& split, coco::Findings& findings);

/// Checks how the classes of the first split, which is trained on, and those of others go together.
/// `table` is their `count_classes`.
void check_classes(std::span<const NamedSplit> splits, const ClassTable& table,
                   coco::Findings& findings);

/// The classes with the most and with the fewest objects to train on, except those without any.
std::optional<std::pair<std::size_t, std::size_t>> extreme_classes(const ClassTable& table);

}  // namespace millrace
