// Text formatting for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// Breaks `text` into lines of at most `columns` characters, between words. Continuation lines
/// begin with `indent`. A longer word is not broken; the line breaks and indents of `text` are
/// kept.
std::string wrapped(std::string_view text, std::size_t columns, std::string_view indent);

/// Replaces control characters other than \n and \t by `escape` and two hexadecimal digits, such as
/// "\x1b". Needed on terminals and in logs, since file names from untrusted sources may contain
/// them.
std::string without_controls(std::string_view text, std::string_view escape = "\\x");

/// Returns the number of bytes of the UTF-8 character at the beginning of `text`; 0 if it is
/// invalid. Async-signal-safe. REQUIRES: `text` is not empty.
std::size_t utf8_length(std::string_view text);

/// Returns a message without control characters, truncated to 256 KiB.
std::string printable(std::string_view text);

}  // namespace millrace
