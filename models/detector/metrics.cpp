#include "millrace/models/detector/metrics.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "millrace/models/detector/detector.h"

namespace millrace {

void Metrics::add(std::string name, const at::Tensor& part, const at::Tensor& whole) {
  names_.push_back(std::move(name));
  for (const auto* number : {&part, &whole})
    numbers_.push_back(number->detach().reshape({}).to(at::kFloat));
}

void Metrics::add(std::string name, double part, double whole) {
  add(std::move(name), at::scalar_tensor(part), at::scalar_tensor(whole));
}

std::vector<MetricSums> Metrics::sums(const double* values) const {
  std::vector<MetricSums> sums;
  for (const auto& name : names_) {
    const double part = *values++, whole = *values++;
    millrace::add(sums, {name, part, whole});
  }
  return sums;
}

void add(std::vector<MetricSums>& sums, const MetricSums& more) {
  auto found = std::ranges::find(sums, more.name, &MetricSums::name);
  if (found == sums.end()) found = sums.insert(sums.end(), {more.name});
  found->part += more.part;
  found->whole += more.whole;
}

std::vector<std::pair<std::string, double>> metric_values(const std::vector<MetricSums>& sums) {
  std::vector<std::pair<std::string, double>> result;
  for (const auto& [name, part, whole] : sums)
    if (whole > 0) result.emplace_back(name, part / whole);
  return result;
}

}  // namespace millrace
