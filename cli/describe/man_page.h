// The manual page, from what the commands declare.
#pragma once

#include <string>

#include "millrace/cli/describe/command_tree.h"

namespace millrace::cli {

/// trainer(1), in the language of man(7). `version`: "0.1.0"; `day`: "2026-11-23", or empty.
std::string man_page(const CommandDoc& program, const std::string& version, const std::string& day);

}  // namespace millrace::cli
