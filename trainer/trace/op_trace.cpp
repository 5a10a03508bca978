#include "millrace/trainer/trace/op_trace.h"

#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "millrace/trainer/device_numbers.h"

namespace millrace {
namespace {

/// Static, since libtorch calls plain functions.
struct RecordedOps {
  std::mutex mutex;
  std::vector<OpSpan> spans;
  std::atomic<c10::Device> device = c10::Device(c10::DeviceType::CPU);  // the device to wait for
  std::atomic<bool> counts_work = false;
} recorded_ops;

struct OpenOp final : at::ObserverContext {
  std::optional<OpWorkCount> work;
  Clock::time_point begin;
};

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction& function) {
  auto op = std::make_unique<OpenOp>();
  if (recorded_ops.counts_work) op->work.emplace(function);
  op->begin = Clock::now();
  return op;
}

void end_op(const at::RecordFunction& function, at::ObserverContext* context) {
  wait_for(recorded_ops.device);
  const auto now = Clock::now();
  const auto& op = *static_cast<const OpenOp*>(context);
  const auto work = op.work ? op.work->with_outputs(function) : OpWork();
  const std::scoped_lock lock(recorded_ops.mutex);
  recorded_ops.spans.push_back({function.name(), OpTrace::this_thread(), op.begin, now, work});
}

}  // namespace

OpTrace::OpTrace(c10::Device device, bool counts_work) {
  wait_for(device);
  recorded_ops.device = device;
  recorded_ops.counts_work = counts_work;
  handle_ = at::addGlobalCallback(at::RecordFunctionCallback(begin_op, end_op)
                                      .needsInputs(counts_work)
                                      .needsOutputs(counts_work));
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
