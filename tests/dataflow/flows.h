// Shared by the tests of flows: enough workers for 8 threads on any machine, and small helpers.
#pragma once

#include <oneapi/tbb/global_control.h>
#include <spdlog/spdlog.h>

#include <vector>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::testing {

/// Allows 9 threads, as main() of the executable does. Otherwise TBB has no worker thread on a
/// machine with one core.
inline const oneapi::tbb::global_control enough_workers{
    oneapi::tbb::global_control::max_allowed_parallelism, 9};

/// Hides the warnings about samples that tests skip on purpose.
inline const bool quiet = [] {
  spdlog::set_level(spdlog::level::err);
  return true;
}();

/// kSanitized is true in builds with AddressSanitizer or ThreadSanitizer. ThreadSanitizer runs a
/// thread of its own.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
inline constexpr int kSanitizerThreads = 1;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
inline constexpr int kSanitizerThreads = 0;
#else
inline constexpr bool kSanitized = false;
inline constexpr int kSanitizerThreads = 0;
#endif

/// A source of the numbers from 0 to `count` - 1.
struct Numbers {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  std::int64_t operator[](std::int64_t index) const { return index; }
};

/// Takes the remaining values of a flow, at most `most`.
template <class T>
std::vector<T> drain(DataFlow<T>& flow, std::size_t most = 1'000'000) {
  std::vector<T> values;
  while (values.size() < most) {
    auto item = flow.next();
    if (!item) break;
    values.push_back(std::move(item->value));
  }
  return values;
}

}  // namespace millrace::testing
