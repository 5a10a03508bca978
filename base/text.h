// Small helpers for names and for messages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// The candidate with the fewest edits (insert, delete, replace, swap) from `word`; empty: none is
/// near.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// "a, b, c"
std::string joined(std::span<const std::string> words, std::string_view between = ", ");

/// `; did you mean 'x'?` for the nearest candidate, or `; known: a, b, c`.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// Whether `pattern`, in which each * stands for any characters, is `text`: "backbone.*".
bool matches_wildcards(std::string_view pattern, std::string_view text);

/// "1.5 GiB", "320 MiB", "12 KiB"
std::string byte_text(double bytes);

/// "1:02:03", "2:03" or "3.2 s"
std::string duration_text(double seconds);

/// "1 image", "2 images"
std::string counted(long long count, std::string_view noun);

}  // namespace millrace
