// What is wrong with a data set: kinds of faults, each counted and shown by its first few examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::coco {

/// error: training would stop, skip something or learn something wrong. warning: training goes on,
/// but scores or results may not be what one expects. note: good to know.
enum class Severity { error, warning, note };

/// All texts are literals.
struct FindingKind {
  std::string_view name;  // stable, for scripts: "box-outside"
  Severity severity;
  std::string_view what;    // "boxes that reach beyond their image"
  std::string_view effect;  // what happens then
};

/// Where a fault is. What is unknown or irrelevant is empty.
struct FindingExample {
  std::optional<std::int64_t> annotation = {}, image = {}, category = {};  // ids
  std::string file = {}, what = {};

  /// "annotation 12, image 3 (a.jpg): the box reaches 9 pixels beyond it"
  std::string text() const;
};

/// The findings of one kind.
struct Finding {
  FindingKind kind;
  std::size_t count = 0;
  std::vector<FindingExample> examples;  // the first few
};

/// The findings of a data set, or of a part of it: those of parts, appended in order, equal those
/// of the whole, so they do not depend on the number of threads. Not thread-safe.
class Findings {
 public:
  /// Keeps up to `max_examples` of each kind.
  explicit Findings(std::size_t max_examples) : max_examples_(max_examples) {}

  void add(const FindingKind& kind, FindingExample example);
  void append(const Findings& others);
  /// Without any, for a part.
  Findings none() const { return Findings(max_examples_); }

  /// Errors first; within a severity by name.
  std::vector<Finding> sorted() const;

 private:
  std::size_t max_examples_;
  std::map<std::string_view, Finding> by_name_;
};

}  // namespace millrace::coco
