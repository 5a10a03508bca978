#include "trainer/figures.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

namespace millrace {

void Figures::add(std::string name, const at::Tensor& part, const at::Tensor& whole) {
  names_.push_back(std::move(name));
  for (const auto* number : {&part, &whole})
    numbers_.push_back(number->detach().reshape({}).to(at::kFloat));
}

void Figures::add(std::string name, double part, double whole) {
  add(std::move(name), at::scalar_tensor(part), at::scalar_tensor(whole));
}

std::vector<std::pair<std::string, double>> Figures::quotients(const double* values) const {
  struct Sums {
    std::string name;
    double part = 0, whole = 0;
  };
  std::vector<Sums> sums;
  for (const auto& name : names_) {
    auto found = std::ranges::find(sums, name, &Sums::name);
    if (found == sums.end()) found = sums.insert(sums.end(), {name});
    found->part += *values++;
    found->whole += *values++;
  }
  std::vector<std::pair<std::string, double>> result;
  for (const auto& [name, part, whole] : sums)
    if (whole > 0) result.emplace_back(name, part / whole);
  return result;
}

}  // namespace millrace
