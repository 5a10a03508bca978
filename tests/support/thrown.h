// Messages of exceptions that the tested code throws.
#pragma once

#include <string>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace::testing {

/// Returns the message of the exception E that `work` throws; empty if it throws nothing.
template <class E = Error, class Work>
std::string message_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const E& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace millrace::testing
