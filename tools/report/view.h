// A page: the viewer of tools/report with its JSON in it, one file that loads no other.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace millrace::report {

/// The page of a kind (tools/report/README.md lists them, and what each has in `view`). `made_by`
/// is the command, for the foot of the page. What is not UTF-8 is replaced. Equal input gives equal
/// bytes. Pure; any thread.
std::string view_page(std::string_view kind, std::string_view made_by,
                      const nlohmann::ordered_json& view);

/// Writes that page whole or not at all. Throws Error.
void write_view(const std::filesystem::path& file, std::string_view kind, std::string_view made_by,
                const nlohmann::ordered_json& view);

}  // namespace millrace::report
