#include "millrace/trainer/running_statistics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "millrace/trainer/cluster/share_values.h"

namespace millrace {

RunningStatistics::RunningStatistics(const Parameters& parameters) {
  for (const auto& parameter : parameters) {
    if (parameter.kind != ParameterKind::buffer || parameter.value.numel() == 0) continue;
    const auto value = parameter.value.detach();
    auto kind = std::ranges::find_if(kinds_, [&](const Kind& known) {
      return known.before.scalar_type() == value.scalar_type();
    });
    if (kind == kinds_.end())
      kind = kinds_.insert(kinds_.end(), {{}, at::empty({0}, value.options()), {}});
    kind->values.push_back(value);
  }
  keep();
}

at::Tensor RunningStatistics::joined(const std::vector<at::Tensor>& values) {
  std::vector<at::Tensor> flat;
  flat.reserve(values.size());
  for (const auto& value : values) flat.push_back(value.reshape({-1}));
  return at::cat(flat);
}

void RunningStatistics::divide(const at::Tensor& joined, const std::vector<at::Tensor>& values) {
  std::vector<at::Tensor> parts;
  std::int64_t start = 0;
  for (const auto& value : values) {
    parts.push_back(joined.narrow(0, start, value.numel()).view(value.sizes()));
    start += value.numel();
  }
  at::_foreach_copy_(values, parts);
}

void RunningStatistics::keep() {
  for (auto& kind : kinds_) kind.before = joined(kind.values);
}

at::Tensor RunningStatistics::moved() {
  std::vector<at::Tensor> any;
  for (auto& kind : kinds_) {
    kind.now = joined(kind.values);
    any.push_back((kind.now != kind.before).any());
  }
  return (any.size() == 1 ? any[0] : at::stack(any).any()).to(at::kFloat);
}

std::string RunningStatistics::bytes() const {
  std::vector<at::Tensor> all;
  for (const auto& kind : kinds_) all.push_back(kind.now);
  return bytes_of(all);
}

void RunningStatistics::set(std::string_view bytes) {
  std::vector<at::Tensor> all;
  for (auto& kind : kinds_) all.push_back(kind.now);
  set_bytes(all, bytes);
  for (const auto& kind : kinds_) divide(kind.now, kind.values);
}

void RunningStatistics::restore() {
  for (const auto& kind : kinds_) divide(kind.before, kind.values);
}

}  // namespace millrace
