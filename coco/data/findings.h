// Findings about a data set: each kind of fault with its count and its first examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::coco {

/// error: training would stop, skip data or learn something wrong. warning: training works, but
/// scores or results may be unexpected. note: information only.
enum class Severity { error, warning, note };

/// A kind of finding. All texts are string literals.
struct FindingKind {
  std::string_view name;  // stable name for scripts, such as "box-outside"
  Severity severity;
  std::string_view what;    // such as "boxes that reach beyond their image"
  std::string_view effect;  // consequence for training
};

/// The place of a fault. Members that are unknown or irrelevant are empty.
struct FindingExample {
  std::optional<std::int64_t> annotation = {}, image = {}, category = {};  // ids
  std::string file = {}, what = {};

  /// Returns "annotation 12, image 3 (a.jpg): the box reaches 9 pixels beyond it".
  std::string text() const;
};

/// All findings of one kind.
struct Finding {
  FindingKind kind;
  std::size_t count = 0;
  std::vector<FindingExample> examples;  // the first few
  std::string where = {};                // such as the split "train"; empty = not recorded
};

/// The findings of a data set or a part of it. Appending the findings of the parts in order gives
/// those of the whole, so that results do not depend on the number of threads. Not thread-safe.
class Findings {
 public:
  /// Keeps up to `max_examples` examples of each kind.
  explicit Findings(std::size_t max_examples) : max_examples_(max_examples) {}

  void add(const FindingKind& kind, FindingExample example);
  void append(const Findings& others);
  /// Returns an empty object with the same limit, for a part of the data set.
  Findings none() const { return Findings(max_examples_); }

  /// Returns the findings, errors first, then by name.
  std::vector<Finding> sorted() const;

 private:
  std::size_t max_examples_;
  std::map<std::string_view, Finding> by_name_;
};

}  // namespace millrace::coco
