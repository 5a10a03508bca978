// What a test's subject throws.
#pragma once

#include <string>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace::testing {

/// The message of the E that `work` throws; "" where it throws nothing.
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
