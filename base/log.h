// Logging: spdlog's default logger, always on standard error (standard output belongs to results).
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>

namespace millrace {

/// Sets up the process-wide logger. Call once, from main.
void start_logging(bool verbose);

/// Also writes the log to `file` (appending) from now on; an empty path stops that.
void log_to_file(const std::filesystem::path& file);

}  // namespace millrace
