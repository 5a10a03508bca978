// Reads the part of Python in which configurations are written, as text: literals, `dict(...)`,
// arithmetic of them, names of values that stand above. Nothing is run; whatever else there is, a
// call or an import, is an error that names its line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/migration/files/python_expressions.h"
#include "millrace/migration/files/value.h"

namespace millrace {

/// A statement `a.b[0] = value`: of a file's lines.
struct Assignment {
  std::vector<Value> target;  // the name, then keys (strings) and places in lists (integers)
  Value value;
};

/// Reads a file's statements and gives each to `assign` before it reads the next. Throws
/// ConfigError naming the file and the line.
void read_assignments(std::string_view text, const std::string& source, const NamedValue& named,
                      const std::function<void(Assignment)>& assign);

/// Reads one expression, such as the text "[x * 2 for x in [1, 2]]". Throws ConfigError naming the
/// place.
Value read_expression(std::string_view text, const Place& place);

/// The same for a text that may be anything: nothing if it is no literal.
std::optional<Value> literal_of(std::string_view text, const Place& place);

}  // namespace millrace
