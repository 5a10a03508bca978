// Captures what the tested code logs.
#pragma once

#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/wait.h"

namespace millrace::testing {

/// Captures log output during its lifetime, in place of the default logger. Any thread may log.
/// Must be created and destroyed while no other thread logs.
class Log {
 public:
  Log() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
    spdlog::set_pattern("%l %v");
  }
  Log(const Log&) = delete;
  ~Log() { spdlog::set_default_logger(before_); }

  /// Returns what was logged since the last call.
  std::string take() {
    const auto text = all();
    return text.substr(std::exchange(taken_, text.size()));
  }

  /// Waits until `text` is logged after the output already taken; returns false after the deadline
  /// of wait_until().
  bool wait_for_text(const std::string& text) const {
    return wait_until([&] { return all().find(text, taken_) != std::string::npos; });
  }

 private:
  std::string all() const {
    const auto lines = sink_->last_formatted();
    if (lines.size() == kMostLines) throw std::length_error("more lines logged than Log keeps");
    std::string text;
    for (const auto& line : lines) text += line;
    return text;
  }

  static constexpr std::size_t kMostLines = 4000;
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kMostLines);
  std::size_t taken_ = 0;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace millrace::testing
