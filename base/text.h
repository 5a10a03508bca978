// Small helpers for texts: names, messages and the environment.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Returns the candidate with the fewest edits (insert, delete, replace, swap) from `word`; empty
/// if none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

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

/// Returns "1:02:03", "2:03" or "3.2 s".
std::string duration_text(double seconds);

/// Returns "1 image" or "2 images".
std::string counted(long long count, std::string_view noun);

}  // namespace millrace
