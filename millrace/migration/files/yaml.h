// YAML as detectron2 reads it: plain and quoted texts that are Python's literals are what they say.
#pragma once

#include <string>

#include "millrace/migration/files/value.h"

namespace millrace {

/// Reads one document, a mapping (or nothing: an empty one). `source` names it in messages. Throws
/// ConfigError with the line, also for tags that would make objects of Python (but for lists that
/// are written as an expression, as detectron2's RetinaNet has them).
Value parse_yaml(const std::string& text, const std::string& source);

}  // namespace millrace
