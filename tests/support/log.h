// What a test's subject says in the log.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

namespace millrace::testing {

/// What is logged while this lives, instead of where it would go. Take it when no other thread logs.
class Log {
 public:
  Log() {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    spdlog::set_pattern("%l %v");
  }
  Log(const Log&) = delete;
  ~Log() { spdlog::set_default_logger(before_); }

  std::string take() {
    auto text = text_.str();
    text_.str("");
    return text;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace millrace::testing
