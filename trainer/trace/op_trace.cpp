#include "millrace/trainer/trace/op_trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
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

using Values = c10::ArrayRef<const c10::IValue>;

/// Returns the sum of count(tensor) over a tensor or a list of tensors.
template <class Count>
double sum_over(const c10::IValue& value, const Count& count) {
  double sum = 0;
  if (value.isTensor() && value.toTensor().defined())
    sum = static_cast<double>(count(value.toTensor()));
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector())
      sum += static_cast<double>(count(tensor));
  return sum;
}

double bytes_in(const c10::IValue& value) {
  return sum_over(value, [](const at::Tensor& tensor) { return tensor.nbytes(); });
}

double values_in(const c10::IValue& value) {
  return sum_over(value, [](const at::Tensor& tensor) { return tensor.numel(); });
}

bool is_tensor(Values inputs, std::size_t i) {
  return i < inputs.size() && inputs[i].isTensor() && inputs[i].toTensor().defined();
}

/// Returns the number of products per value, on the side of a convolution whose channels are the
/// weight's first dimension.
double products_per_value(const at::Tensor& weight) {
  return static_cast<double>(c10::multiply_integers(weight.sizes().slice(1)));
}

/// Returns the operations per value of the output; 0 for unknown operators.
double flops_per_value(std::string_view name, Values inputs) {
  const auto side = [&](std::size_t input, std::int64_t dim) {
    return is_tensor(inputs, input) ? static_cast<double>(inputs[input].toTensor().size(dim)) : 0;
  };
  if (name == "mkldnn::_linear_pointwise") return 2 * side(0, -1);
  if (name == "aten::mm") return 2 * side(0, 1);
  if (name == "aten::addmm") return 2 * side(1, 1);
  if (name == "aten::bmm") return 2 * side(0, 2);
  if ((name == "millrace::winograd" || name == "mkldnn::_convolution_pointwise" ||
       name == "aten::mkldnn_convolution" || name == "aten::cudnn_convolution" ||
       name == "aten::_slow_conv2d_forward") &&
      is_tensor(inputs, 1))
    return 2 * products_per_value(inputs[1].toTensor());
  return 0;
}

/// Returns the operations of a call that are known from its inputs.
double flops_of_call(std::string_view name, Values inputs) {
  // Counted like the direct convolution, although Winograd needs a quarter of it.
  const bool winograd = name == "millrace::winograd_backward";
  const bool backward = winograd || name == "aten::convolution_backward";
  // For other operators, an inner operator is counted.
  const bool transposed =
      name == "aten::_convolution" && inputs.size() > 6 && inputs[6].isBool() && inputs[6].toBool();
  if (!backward && !transposed) return 0;
  const std::size_t x = backward ? 1 : 0, weight = x + 1;
  if (!is_tensor(inputs, weight)) return 0;
  const auto per_value = 2 * products_per_value(inputs[weight].toTensor());
  if (transposed) return per_value * values_in(inputs[x]);
  const std::size_t last = winograd ? 3 : 10;
  if (inputs.size() <= last || !inputs[last].isBoolList()) return 0;
  const bool of_transposed = !winograd && inputs[7].isBool() && inputs[7].toBool();
  const auto wanted = inputs[last].toBoolList();  // gradients of input, weight and bias
  return per_value * values_in(inputs[of_transposed ? x : 0]) *
         (int{wanted.get(0)} + int{wanted.get(1)});
}

struct OpenOp final : at::ObserverContext {
  Clock::time_point begin;
  OpWork of_inputs;            // 0 unless counted
  double flops_per_value = 0;  // operations per value of the output
};

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction& function) {
  auto op = std::make_unique<OpenOp>();
  if (recorded_ops.counts_work) {
    op->flops_per_value = flops_per_value(function.name(), function.inputs());
    op->of_inputs.flops = flops_of_call(function.name(), function.inputs());
    for (const auto& input : function.inputs()) op->of_inputs.bytes += bytes_in(input);
  }
  op->begin = Clock::now();
  return op;
}

void end_op(const at::RecordFunction& function, at::ObserverContext* context) {
  wait_for(recorded_ops.device);
  const auto now = Clock::now();
  const auto& op = *static_cast<const OpenOp*>(context);
  auto work = op.of_inputs;
  if (recorded_ops.counts_work) {
    const Values outputs(function.outputs().data(), function.outputs().size());
    for (const auto& output : outputs) work.bytes += bytes_in(output);
    if (op.flops_per_value > 0 && !outputs.empty())
      work.flops += op.flops_per_value * values_in(outputs[0]);
  }
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
