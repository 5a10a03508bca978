// Builds pages: the viewer of tools/report with its JSON inlined, as one self-contained file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace millrace::report {

/// Returns the page of a kind (tools/report/README.md lists the kinds and the contents of `view`).
/// `made_by` is the command, for the footer. Invalid UTF-8 is replaced. Equal input gives equal
/// bytes. Pure and thread-safe.
std::string view_page(std::string_view kind, std::string_view made_by,
                      const nlohmann::ordered_json& view);

/// Writes the page atomically. Throws Error.
void write_view(const std::filesystem::path& file, std::string_view kind, std::string_view made_by,
                const nlohmann::ordered_json& view);

}  // namespace millrace::report
