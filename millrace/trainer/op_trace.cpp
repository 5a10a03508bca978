#include "millrace/trainer/op_trace.h"

#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "millrace/trainer/device_numbers.h"

namespace millrace {
namespace {

/// Static, since libtorch calls plain functions.
struct RecordedOps {
  std::mutex mutex;
  std::vector<OpSpan> spans;
  std::atomic<c10::Device> device = c10::Device(c10::DeviceType::CPU);  // that is waited for
} recorded_ops;

struct OpenOp final : at::ObserverContext {
  Clock::time_point begin = Clock::now();
};

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction&) {
  return std::make_unique<OpenOp>();
}

void end_op(const at::RecordFunction& function, at::ObserverContext* context) {
  wait_for(recorded_ops.device);
  const auto now = Clock::now();
  const std::scoped_lock lock(recorded_ops.mutex);
  recorded_ops.spans.push_back(
      {function.name(), OpTrace::this_thread(), static_cast<const OpenOp*>(context)->begin, now});
}

}  // namespace

OpTrace::OpTrace(c10::Device device) {
  wait_for(device);
  recorded_ops.device = device;
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(begin_op, end_op));
}

OpTrace::~OpTrace() {
  at::removeCallback(handle_);
  take();
}

std::vector<OpSpan> OpTrace::take() {
  const std::scoped_lock lock(recorded_ops.mutex);
  return std::exchange(recorded_ops.spans, {});
}

std::uint64_t OpTrace::this_thread() { return at::RecordFunction::currentThreadId(); }

}  // namespace millrace
