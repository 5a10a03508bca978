// What a test's subject says in the log.
#pragma once

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "tests/support/wait.h"

namespace millrace::testing {

/// Collects what is logged while this lives, instead of where it would go. Any thread may log;
/// create and destroy it while no other does.
class Log {
 public:
  Log() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
    spdlog::set_pattern("%l %v");
  }
  Log(const Log&) = delete;
  ~Log() { spdlog::set_default_logger(before_); }

  /// What was logged since the last call.
  std::string take() { return sink_->take(); }

  /// Waits until `text` is logged; false where it never is.
  bool comes_to_say(const std::string& text) const {
    return comes_to([&] { return sink_->has(text); });
  }

 private:
  class Sink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::string take() {
      const std::lock_guard lock(mutex_);
      return std::exchange(text_, "");
    }
    bool has(const std::string& text) {
      const std::lock_guard lock(mutex_);
      return text_.find(text) != std::string::npos;
    }

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t line;
      formatter_->format(message, line);
      text_.append(line.data(), line.size());
    }
    void flush_() override {}

    std::string text_;
  };

  std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

}  // namespace millrace::testing
