#include "millrace/callbacks/common/op_trace.h"

#include <ATen/record_function.h>

#include <memory>
#include <mutex>
#include <utility>

namespace millrace {
namespace {

/// libtorch calls plain functions.
struct Recording {
  std::mutex mutex;
  std::vector<OpSpan> spans;
} recording;

struct Open final : at::ObserverContext {
  OpSpan::Clock::time_point begin = OpSpan::Clock::now();
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
  return std::make_unique<Open>();
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto now = OpSpan::Clock::now();
  const std::scoped_lock lock(recording.mutex);
  recording.spans.push_back(
      {function.name(), OpTrace::this_thread(), static_cast<const Open*>(context)->begin, now});
}

}  // namespace

OpTrace::OpTrace() : handle_(at::addGlobalCallback(at::RecordFunctionCallback(begin, end))) {}

OpTrace::~OpTrace() {
  at::removeCallback(handle_);
  take();
}

std::vector<OpSpan> OpTrace::take() {
  const std::scoped_lock lock(recording.mutex);
  return std::exchange(recording.spans, {});
}

std::uint64_t OpTrace::this_thread() { return at::RecordFunction::currentThreadId(); }

}  // namespace millrace
