// A sequence of actions that continues after an exception.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"

namespace millrace {

/// Keeps the first exception for done() to rethrow; later exceptions are logged.
class DoAll {
 public:
  template <class Work>
  DoAll& then(Work&& work) {
    try {
      work();
    } catch (const std::exception& problem) {
      failed(std::current_exception(), sentence_of(problem.what()));
    } catch (...) {
      const auto what = what_is_thrown();
      failed(std::make_exception_ptr(Error(what)), what);
    }
    return *this;
  }

  bool has_failed() const { return first_ != nullptr; }

  /// Message of the first exception; empty = none.
  const std::string& failure() const { return failure_; }

  /// Rethrows the first exception, if any.
  void done() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  void failed(std::exception_ptr problem, std::string what) {
    if (first_) return log_error("{}", what);
    first_ = std::move(problem);
    failure_ = std::move(what);
  }

  std::exception_ptr first_;
  std::string failure_;
};

}  // namespace millrace
