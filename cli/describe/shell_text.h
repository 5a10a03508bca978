// Texts as shells read them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::cli {

/// A word as bash, zsh and fish read it.
std::string quoted_word(const std::string& text);

/// Such words, each as `format` has it: "  {}\n".
std::string quoted_words(const std::vector<std::string>& words, const char* format);

std::string first_line(const std::string& text);

/// Puts texts in place of names that a script has: "@COMMANDS@". REQUIRES: it has each.
std::string filled(std::string script,
                   const std::vector<std::pair<std::string_view, std::string>>& values);

}  // namespace millrace::cli
