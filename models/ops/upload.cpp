#include "millrace/models/ops/upload.h"

#include <ATen/ops/empty.h>

#include <cstring>

namespace millrace {
namespace {

constexpr std::int64_t kAlignment = 16;

std::int64_t aligned_bytes(const at::Tensor& value) {
  const auto bytes = static_cast<std::int64_t>(value.nbytes());
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::vector<at::Tensor> uploaded(std::vector<at::Tensor> values, at::Device device) {
  if (device.is_cpu()) return values;
  std::int64_t total = 0;
  for (auto& value : values) {
    value = value.contiguous();
    total += aligned_bytes(value);
  }
  const auto pack = at::empty({total}, at::TensorOptions(at::kByte).pinned_memory(true));
  auto* to = pack.mutable_data_ptr<std::uint8_t>();
  for (const auto& value : values) {
    if (value.numel() > 0) std::memcpy(to, value.const_data_ptr(), value.nbytes());
    to += aligned_bytes(value);
  }
  // The allocator of page-locked memory keeps the block until the copy is done.
  const auto there = pack.to(device, at::kByte, /*non_blocking=*/true);
  std::int64_t first = 0;
  for (auto& value : values) {
    const auto bytes = static_cast<std::int64_t>(value.nbytes());
    auto own = value.numel() > 0
                   ? there.narrow(0, first, bytes).view(value.scalar_type()).view(value.sizes())
                   : at::empty(value.sizes(), value.options().device(device));
    first += aligned_bytes(value);
    value = std::move(own);
  }
  return values;
}

}  // namespace millrace
