// Logging with spdlog's default logger to standard error (standard output is for results).
#pragma once

#include <spdlog/common.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace millrace {

/// Logs the formatted line. Not a template, so that spdlog and its formatting are compiled once.
void log_formatted(spdlog::level::level_enum level, fmt::string_view format,
                   fmt::format_args arguments);

/// Log a line: log_info("read {} images", count). Threads may log at the same time. Debug lines are
/// shown with --verbose, info lines without --quiet, warnings and errors always.
template <typename... Arguments>
void log_debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::debug, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void log_info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::info, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void log_warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::warn, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void log_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  log_formatted(spdlog::level::err, format, fmt::make_format_args(arguments...));
}

/// What standard error gets: warnings and errors alone, what happens, or all. A file of log_to_file
/// gets what happens also where that is quiet.
enum class LogLevel { quiet, usual, verbose };

/// Sets up the process-wide logger. Call once, from main. Colours are for terminals, and not where
/// the environment has NO_COLOR (https://no-color.org).
void start_logging(LogLevel level = LogLevel::usual);

/// Whether it was started as quiet.
bool log_is_quiet();

/// A spdlog formatter whose %P is the message without control characters.
std::unique_ptr<spdlog::formatter> log_formatter(const std::string& pattern);

/// Logs what a command was run for, its result: shown, without time and level, even where it is
/// quiet.
void log_result(std::string_view text);

/// Names this process, one of several: "rank 3 (host b)". Warnings and errors begin with the name;
/// other lines are shown only from the `chief`.
void log_as(const std::string& name, bool chief);

/// Also appends the log to `file` from now on, the first time with all lines before; an empty path
/// stops that. Throws Error.
void log_to_file(const std::filesystem::path& file);

/// Logs to that file only, if there is one: the command itself shows the error that ends it, and
/// tables are long.
void log_error_in_file(const std::string& text);
void log_info_in_file(const std::string& text);

/// Writes to standard error; a closed terminal or pipe is not an error.
void print_to_stderr(std::string_view text);

}  // namespace millrace
