// Small helpers for texts: names, messages and the environment.
#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Returns the candidate with the fewest edits (insert, delete, replace, swap) from `word`; empty
/// if none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// Returns the text with the letters A .. Z in lower case.
std::string lower_case(std::string_view text);

/// Returns "a, b, c".
std::string joined(std::span<const std::string> words, std::string_view between = ", ");

/// Returns `; did you mean 'x'?` for the nearest candidate, or `; known: a, b, c`.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// Returns whether `text` matches `pattern`, in which each * matches any characters, as in
/// "backbone.*".
bool matches_wildcards(std::string_view pattern, std::string_view text);

/// Returns the value of an environment variable; empty if it is not set.
std::string environment(const char* name);

/// Returns "1.5 GiB", "320 MiB" or "12 KiB".
std::string byte_text(double bytes);
std::string byte_text(std::integral auto bytes) { return byte_text(static_cast<double>(bytes)); }

/// Returns "1:02:03", "2:03" or "3.2 s".
std::string duration_text(double seconds);

/// Returns a fraction as "3.1 %" or "42 %".
std::string percent_text(double share);

/// Returns "1 image" or "2 images". `plural`: "classes"; empty = the noun with an s.
std::string counted(long long count, std::string_view noun, std::string_view plural = "");
std::string counted(std::integral auto count, std::string_view noun, std::string_view plural = "") {
  return counted(static_cast<long long>(count), noun, plural);
}

}  // namespace millrace
