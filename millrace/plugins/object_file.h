// What a shared object says about itself, read from its bytes: none of its code runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// The bytes of a section of an ELF shared object; nothing where it has no such section. Throws
/// Error saying why `file` cannot be opened by this process: no such file, no shared object, one
/// for another machine, a damaged one.
std::optional<std::string> section_of(const std::filesystem::path& file, std::string_view section);

}  // namespace millrace
