// Arithmetic of literals, as Python does it.
#pragma once

#include <string>

#include "millrace/migration/files/python_tokens.h"
#include "millrace/migration/files/value.h"

namespace millrace {

/// `left` `sign` `right`, at the place of `left`: numbers, lists and strings that are joined, a
/// list that is repeated. Throws ConfigError at the token that `tokens` is at.
Value combined(const std::string& sign, Value left, const Value& right, const PythonTokens& tokens);

/// Throws the same for a list or a dict of more elements than a file may make.
void check_size(std::size_t elements, const PythonTokens& tokens);

}  // namespace millrace
