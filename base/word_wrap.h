// Text that fits onto a terminal: lines, characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// `text` in lines of at most `columns` characters, broken between words; what is broken off begins
/// with `indent`. A longer word stays whole, and so do the line breaks and indents of `text`.
std::string wrapped(std::string_view text, std::size_t columns, std::string_view indent);

/// `text` for a terminal or a log: control characters but \n and \t become `escape` and two digits,
/// "\x1b", since names in files of strangers may have them.
std::string without_controls(std::string_view text, std::string_view escape = "\\x");

/// Bytes of the UTF-8 character that `text` begins with; 0 if it is not one. Signal handlers may
/// call it. REQUIRES: not empty.
std::size_t utf8_length(std::string_view text);

/// A message without control characters, cut off after 256 KiB.
std::string printable(std::string_view text);

}  // namespace millrace
