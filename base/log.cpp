#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/errors.h"

namespace millrace {
namespace {

std::shared_ptr<spdlog::sinks::dist_sink_mt> sinks() {
  static const auto all = std::make_shared<spdlog::sinks::dist_sink_mt>();
  return all;
}

}  // namespace

void start_logging(bool verbose) {
  sinks()->set_sinks({std::make_shared<spdlog::sinks::stderr_color_sink_mt>()});
  auto logger = std::make_shared<spdlog::logger>("millrace", sinks());
  // On a terminal, a line takes the place of the progress bar, which is drawn again below it.
  const std::string clear = ::isatty(STDERR_FILENO) ? "\r\x1b[K" : "";
  logger->set_pattern(clear + "%^%H:%M:%S %l%$ %v");
  logger->set_level(verbose ? spdlog::level::debug : spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void log_to_file(const std::filesystem::path& file) {
  static spdlog::sink_ptr current;
  if (current) sinks()->remove_sink(current);
  current = nullptr;
  if (file.empty()) return;
  try {
    current = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  } catch (const spdlog::spdlog_ex& problem) {
    throw Error("cannot write the log: " + std::string(problem.what()));
  }
  current->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  sinks()->add_sink(current);
}

}  // namespace millrace
