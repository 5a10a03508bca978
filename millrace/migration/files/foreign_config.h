// Configurations of other code bases as trees of values, with the files that they inherit from.
// Nothing of a file is run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "millrace/migration/files/value.h"

namespace millrace {

/// What a tree of files says.
struct ForeignConfig {
  Value tree;  // a dict
  // Names given at the top of a file that no other line uses: `train_pipeline`, changed, but not
  // in the data set.
  std::vector<std::pair<std::string, Value>> unused = {};
};

/// detectron2's YAML: `_BASE_` names the file (or files) below, relative to this one; dicts merge,
/// anything else replaces. Strings are Python's literals where they are ones: "(60000, 80000)".
/// Throws ConfigError naming file and line, Error for a file that cannot be read.
ForeignConfig read_yaml_config(const std::filesystem::path& file);

/// MMDetection's Python files, 2.x and 3.x: `_base_` names the files below; dicts merge, unless
/// `_delete_=True` is in the upper one, anything else replaces; `_base_.a.b` is a value of these
/// files, also as the target of an assignment. Throws as above.
ForeignConfig read_python_config(const std::filesystem::path& file);

/// Sets the value at a path of keys, and of places in lists that there are. Makes the dicts on the
/// way. Throws ConfigError.
void set_at_path(Value& tree, const std::string& path, Value value);

/// Merges `over` into `under`: dicts member by member, other values replace. A member
/// `_delete_=True` of an upper dict makes it replace, too.
void merge(Value& under, const Value& over);

}  // namespace millrace
