#include "tests/models/other_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace::testing {
namespace {

const at::Device kDevice(kOtherDevice, 0);
thread_local at::Stream current_stream(at::Stream::DEFAULT, kDevice);
std::atomic<int> own_stream_copies = 0;
std::atomic<bool> is_broken = false;

void check_device() {
  if (is_broken) throw std::runtime_error("a fault occurred on the other device");
}

/// Counts the traffic between CPU and device.
class Counter {
 public:
  void wait(const std::string& cause) {
    const std::lock_guard lock(mutex_);
    if (!paused) ++traffic_.waits_by[cause];
  }
  void upload(bool waits) {
    const std::lock_guard lock(mutex_);
    if (paused) return;
    ++traffic_.uploads;
    if (waits) ++traffic_.waits_by["upload"];
  }
  void download() {
    const std::lock_guard lock(mutex_);
    if (paused) return;
    ++traffic_.downloads;
    ++traffic_.waits_by["download"];
  }
  Traffic take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(traffic_, {});
  }

  static thread_local bool paused;

 private:
  std::mutex mutex_;
  Traffic traffic_;
};
thread_local bool Counter::paused = false;
Counter counter;

/// Stops counting this thread's copies during its lifetime, since they are part of an operator.
class Uncounted {
 public:
  Uncounted() : was_(std::exchange(Counter::paused, true)) {}
  Uncounted(const Uncounted&) = delete;
  ~Uncounted() { Counter::paused = was_; }

 private:
  bool was_;
};

/// Allocates ordinary memory and reports it as pinned.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const block = new std::byte[std::max<std::size_t>(bytes, 1)];
    const std::lock_guard lock(mutex_);
    blocks_.insert(block);
    return {block, block, &release, at::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  bool has(const void* block) const {
    const std::lock_guard lock(mutex_);
    return blocks_.contains(static_cast<const std::byte*>(block));
  }

 private:
  static void release(void* address);

  mutable std::mutex mutex_;
  std::set<const std::byte*> blocks_;
};

PinnedMemory& pinned_memory() {
  static auto* const all = new PinnedMemory;
  return *all;
}

void PinnedMemory::release(void* address) {
  auto& all = pinned_memory();
  auto* const block = static_cast<std::byte*>(address);
  const std::lock_guard lock(all.mutex_);
  all.blocks_.erase(block);
  delete[] block;
}

/// Allocates blocks whose addresses cannot be accessed; the bytes are stored elsewhere.
class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, kDevice};
    void* address = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    const std::lock_guard lock(mutex_);
    blocks_[static_cast<std::byte*>(address)] = {std::make_unique<std::byte[]>(bytes), bytes};
    return {address, address, &release, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(bytes_at(to), bytes_at(from), bytes);
  }

  std::byte* bytes_at(const void* address) const {
    if (!address) return nullptr;
    const auto* wanted = static_cast<const std::byte*>(address);
    const std::lock_guard lock(mutex_);
    auto block = blocks_.upper_bound(const_cast<std::byte*>(wanted));
    if (block == blocks_.begin()) throw std::logic_error("not the other device's memory");
    --block;
    if (wanted >= block->first + block->second.second)
      throw std::logic_error("not the other device's memory");
    return block->second.first.get() + (wanted - block->first);
  }

 private:
  static void release(void* address);

  mutable std::mutex mutex_;
  std::map<std::byte*, std::pair<std::unique_ptr<std::byte[]>, std::size_t>> blocks_;
};

Memory& memory() {
  static auto* const all = new Memory;  // leaked, since tensors may outlive main()
  return *all;
}

void Memory::release(void* address) {
  auto& all = memory();
  const std::lock_guard lock(all.mutex_);
  const auto block = all.blocks_.find(static_cast<std::byte*>(address));
  ::munmap(address, block->second.second);
  all.blocks_.erase(block);
}

/// Returns a CPU tensor that shares the bytes of a device tensor.
at::Tensor within(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  return at::from_blob(memory().bytes_at(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
  using Moment = std::chrono::steady_clock::time_point;

 public:
  at::DeviceType type() const override { return kOtherDevice; }
  at::Device exchangeDevice(at::Device) const override { return kDevice; }
  at::Device getDevice() const override { return kDevice; }
  void setDevice(at::Device) const override {}
  void uncheckedSetDevice(at::Device) const noexcept override {}
  at::Stream getStream(at::Device) const override { return current_stream; }
  at::Stream getDefaultStream(at::Device) const override {
    return at::Stream(at::Stream::DEFAULT, kDevice);
  }
  at::Stream getNewStream(at::Device, int) const override {
    return at::Stream(at::Stream::UNSAFE, kDevice, 1);
  }
  at::Stream exchangeStream(at::Stream stream) const override {
    return std::exchange(current_stream, stream);
  }
  at::DeviceIndex deviceCount() const noexcept override { return 1; }
  /// All work is already done at this time.
  void record(void** event, const at::Stream&, const at::DeviceIndex,
              const c10::EventFlag) const override {
    if (!*event) *event = new Moment;
    *static_cast<Moment*>(*event) = std::chrono::steady_clock::now();
  }
  void destroyEvent(void* event, const at::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
  double elapsedTime(void* from, void* to, const at::DeviceIndex) const override {
    return std::chrono::duration<double, std::milli>(*static_cast<Moment*>(to) -
                                                     *static_cast<Moment*>(from))
        .count();
  }
  void block(void*, const at::Stream&) const override {}
  bool queryEvent(void*) const override { return check_device(), true; }
  void synchronizeEvent(void*) const override { check_device(); }
  bool queryStream(const at::Stream&) const override { return true; }
  void synchronizeStream(const at::Stream&) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const at::Stream&) const override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

/// The device functions that the backward pass needs.
class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  at::DeviceIndex deviceCount() const override { return 1; }
  at::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(at::DeviceIndex) const override {}
  bool isPinnedPtr(const void* data) const override { return pinned_memory().has(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
};
const bool has_hooks = [] {
  c10::register_privateuse1_backend("other");
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory(),
                                   c10::DispatchKeySet(at::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory(),
                                           c10::DispatchKeySet(at::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool asynchronous) {
  if (from.is_cpu() && current_stream.id() != 0) ++own_stream_copies;
  if (from.is_cpu() && !to.is_cpu())
    counter.upload(!asynchronous || !pinned_memory().has(from.storage().data()));
  if (to.is_cpu() && !from.is_cpu()) counter.download();
  within(to).copy_(within(from));
  return to;
}

const at::Tensor& resize_there(const at::Tensor& tensor, at::IntArrayRef size,
                               std::optional<at::MemoryFormat>) {
  auto* const impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  auto& storage = impl->unsafe_storage();
  if (storage.nbytes() >= bytes) return tensor;
  storage.set_data_ptr_noswap(memory().allocate(bytes));
  storage.set_nbytes(bytes);
  return tensor;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) resize_there(to, from.sizes(), {});
  return copy_from(from, to, false);
}

/// Returns true if the operator returns a number to the host or a tensor whose size depends on its
/// input's values.
bool asks_the_device(const std::string& name, const torch::jit::Stack& arguments) {
  static const std::set<std::string> asking{
      "aten::_local_scalar_dense", "aten::equal",    "aten::is_nonzero",
      "aten::masked_select",       "aten::nonzero",  "aten::unique_consecutive",
      "aten::unique_dim",          "aten::_unique2", "aten::bincount"};
  if (asking.contains(name)) return true;
  if (name != "aten::index" && name != "aten::index_put_") return false;
  for (const auto& argument : arguments)  // a mask is an index of unknown size
    if (argument.isList())
      for (const c10::IValue& one : argument.toListRef())
        if (one.isTensor() && one.toTensor().defined() && one.toTensor().scalar_type() == at::kBool)
          return true;
  return false;
}

/// Runs the CPU operator; throws if its tensors, except scalars, are on two devices.
void on_the_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  bool here = false, there = false;
  const auto look = [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.dim() == 0) return;
    (tensor.is_cpu() ? here : there) = true;
  };
  for (const auto& argument : torch::jit::last(*stack, op.schema().arguments().size())) {
    if (argument.isTensor()) look(argument.toTensor());
    if (argument.isTensorList())
      for (const auto& tensor : argument.toTensorVector()) look(tensor);
  }
  if (here && there)
    throw std::logic_error(op.schema().name() + " received tensors on two devices");
  if (asks_the_device(op.schema().name(), *stack)) counter.wait(op.schema().name());
  const Uncounted part_of_it;
  at::native::cpu_fallback(op, stack);
}

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                    at::IntArrayRef output_padding, std::int64_t groups) {
  const Uncounted part_of_it;
  return at::convolution(within(x), within(weight),
                         bias && bias->defined() ? std::optional(within(*bias)) : std::nullopt,
                         stride, padding, dilation, transposed, output_padding, groups)
      .to(kDevice);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolve_back(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
    at::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> mask) {
  const Uncounted part_of_it;
  const std::array<std::int64_t, 1> biases{transposed ? weight.size(1) * groups : weight.size(0)};
  const auto [dx, dw, db] = at::convolution_backward(
      within(gradient), within(x), within(weight), at::OptionalIntArrayRef(biases), stride, padding,
      dilation, transposed, output_padding, groups, mask);
  const auto there = [](const at::Tensor& t) { return t.defined() ? t.to(kDevice) : t; };
  return {there(dx), there(dw), there(db)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("resize_", resize_there);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("convolution_overrideable", convolve);
  library.impl("convolution_backward_overrideable", convolve_back);
  // The default implementation uses views that the channels-last format does not allow.
  library.impl("native_group_norm", torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  // The fallback also runs the detectors' own operators, for which a real device has plug-in
  // kernels.
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

}  // namespace

int copies_on_own_streams() { return own_stream_copies; }

BrokenDevice::BrokenDevice() { is_broken = true; }
BrokenDevice::~BrokenDevice() { is_broken = false; }
Traffic take_traffic() { return counter.take(); }

}  // namespace millrace::testing
