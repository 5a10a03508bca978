#include "millrace/models/layers/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "millrace/base/random.h"

namespace millrace {

at::Generator Scope::generator(std::string_view name) const {
  std::uint64_t key = mix(seed_ + 1);
  for (const char c : full(name)) key = mix(key + static_cast<unsigned char>(c));
  return at::detail::createCPUGenerator(key);
}

namespace {

at::Tensor blank(at::IntArrayRef shape) {
  return at::empty(shape, at::TensorOptions(at::kFloat)
                              .memory_format(shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                               : at::MemoryFormat::Contiguous));
}

}  // namespace

at::Tensor Scope::declare(std::string_view name, const at::Tensor& value,
                          ParameterKind kind) const {
  return parameters_.add(full(name), value.to(device_), kind);
}

at::Tensor Scope::constant(std::string_view name, at::IntArrayRef shape, double value,
                           ParameterKind kind) const {
  return declare(name, at::full(shape, value, at::kFloat), kind);
}

at::Tensor Scope::normal(std::string_view name, at::IntArrayRef shape, double deviation) const {
  auto value = blank(shape);
  if (random_) value.normal_(0, deviation, generator(name));
  return declare(name, value, ParameterKind::weight);
}

at::Tensor Scope::uniform(std::string_view name, at::IntArrayRef shape, double bound) const {
  auto value = blank(shape);
  if (random_) value.uniform_(-bound, bound, generator(name));
  return declare(name, value, ParameterKind::weight);
}

}  // namespace millrace
