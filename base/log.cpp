#include "millrace/base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/progress_bar.h"
#include "millrace/base/word_wrap.h"

namespace millrace {
namespace {

constexpr std::size_t kMostEarlyLines = 1000;

struct Logging {
  std::shared_ptr<spdlog::sinks::dist_sink_mt> sinks =
      std::make_shared<spdlog::sinks::dist_sink_mt>();
  // Lines logged before log_to_file is called; nullptr once a file has them.
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> early;
  spdlog::sink_ptr file;     // file of log_to_file; nullptr = none
  std::string process_name;  // name given to set_process_name
  bool is_quiet = false;
};

Logging& logging() {
  static Logging state;
  return state;
}

/// A pattern flag that expands to `text(message, number of characters before it in the line)`.
template <std::string (*text)(const spdlog::details::log_msg&, std::size_t)>
class Flag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const auto shown = text(message, out.size());
    out.append(shown.data(), shown.data() + shown.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Flag>(); }
};

/// Pattern flag %N: the process's name before warnings and errors.
std::string name_before(const spdlog::details::log_msg& message, std::size_t) {
  const auto& name = logging().process_name;
  return message.level < spdlog::level::warn || name.empty() ? "" : name + ": ";
}

/// On a terminal, a log line replaces the progress bar, which is then drawn again below it.
constexpr std::string_view kClearLine = "\r\x1b[K";

/// Pattern flag %P: the message without control characters.
std::string plain(const spdlog::details::log_msg& message, std::size_t) {
  return printable({message.payload.data(), message.payload.size()});
}

/// Pattern flag %W: the message, wrapped between words to the width of the terminal. Messages that
/// begin with "next" contain commands to copy and are not wrapped.
std::string wrapped_message(const spdlog::details::log_msg& message, std::size_t before) {
  const auto text = plain(message, before);
  if (text.starts_with("next")) return text;
  const std::string head(before - kClearLine.size(), ' ');  // time and level
  return wrapped(head + text, static_cast<std::size_t>(terminal_columns()), "    ")
      .substr(head.size());
}

spdlog::color_mode colors() {
  const auto* unwanted = std::getenv("NO_COLOR");
  return unwanted && *unwanted != '\0' ? spdlog::color_mode::never : spdlog::color_mode::automatic;
}

void log_in_file(spdlog::level::level_enum level, const std::string& text) {
  const auto& file = logging().file;
  if (!file) return;
  file->log({spdlog::default_logger()->name(), level, text});
  file->flush();
}

}  // namespace

void log_formatted(spdlog::level::level_enum level, fmt::string_view format,
                   fmt::format_args arguments) {
  auto& logger = *spdlog::default_logger_raw();
  if (logger.should_log(level)) logger.log(level, fmt::vformat(format, arguments));
}

std::unique_ptr<spdlog::formatter> log_formatter(const std::string& pattern) {
  auto made = std::make_unique<spdlog::pattern_formatter>();
  made->add_flag<Flag<name_before>>('N')
      .add_flag<Flag<plain>>('P')
      .add_flag<Flag<wrapped_message>>('W')
      .set_pattern(pattern);
  return made;
}

void start_logging(LogLevel level) {
  auto& [sinks, early, file, name, is_quiet] = logging();
  is_quiet = level == LogLevel::quiet;
  early = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kMostEarlyLines);
  auto shown = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(colors());
  if (is_quiet) shown->set_level(spdlog::level::warn);
  sinks->set_sinks({std::move(shown), early});
  auto logger = std::make_shared<spdlog::logger>("millrace", sinks);
  const std::string line = "%^%H:%M:%S %l%$ %N";
  logger->set_formatter(
      log_formatter(stderr_is_terminal() ? std::string(kClearLine) + line + "%W" : line + "%P"));
  logger->set_level(level == LogLevel::verbose ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::trace);  // so that the log is complete if the process is killed
  spdlog::set_default_logger(std::move(logger));
}

bool log_is_quiet() { return logging().is_quiet; }

void log_result(std::string_view text) {
  const auto logger = spdlog::default_logger();
  logger->info(text);
  if (log_is_quiet() && logger->should_log(spdlog::level::info))
    print_to_stderr(std::string(text) + "\n");
}

void set_process_name(const std::string& name, bool chief) {
  logging().process_name = name;
  if (!chief) spdlog::default_logger()->set_level(spdlog::level::warn);
}

void log_error_in_file(const std::string& text) { log_in_file(spdlog::level::err, text); }
void log_info_in_file(const std::string& text) { log_in_file(spdlog::level::info, text); }

void log_to_file(const std::filesystem::path& file) {
  auto& [sinks, early, current, name, is_quiet] = logging();
  if (current) sinks->remove_sink(current);
  current = nullptr;
  if (file.empty()) return;
  try {
    current = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  } catch (const spdlog::spdlog_ex& problem) {
    throw Error("cannot write the log: " + std::string(problem.what()));
  }
  current->set_formatter(log_formatter("%Y-%m-%d %H:%M:%S.%e %l %N%P"));
  if (early) {
    sinks->remove_sink(early);
    for (const auto& line : early->last_raw()) current->log(line);
    early = nullptr;
  }
  sinks->add_sink(current);
}

void print_to_stderr(std::string_view text) {
  const auto shown = printable(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fflush(stderr);
}

}  // namespace millrace
