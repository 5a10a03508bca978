#include "millrace/trainer/step_numbers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include "millrace/base/errors.h"

namespace millrace {

void StepNumbers::add(std::size_t number, const Losses& losses) {
  for (const auto& [name, loss] : losses)
    losses_[number].emplace_back(name, loss.detach().reshape({}));
  count_.store(losses.size());
}

void StepNumbers::queue(const at::Tensor& measured, const at::Tensor& moved) {
  std::vector<at::Tensor> all;
  for (const auto& own : losses_)
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own.size() % count() != 0 || own[i].first != losses_[0][i % count()].first)
        throw Error(title_ + " returned different losses for two batches of a step");
      all.push_back(own[i].second);
    }
  decisive_ = at::stack(all);
  if (measured.numel() > 0) decisive_ = at::cat({decisive_, measured});
  std::vector<at::Tensor> more;
  for (const auto& own : metrics_)
    for (const auto& number : own.numbers())
      if (is_there(number)) more.push_back(number);
  if (moved.defined()) more.push_back(moved);
  numbers_.emplace(more.empty() ? decisive_ : at::cat({decisive_, at::stack(more)}));
}

at::Tensor StepNumbers::bad() const { return (decisive_ * 0).sum().ne(0).to(at::kFloat); }

std::pair<std::vector<StepReport>, bool> StepNumbers::read() {
  std::vector<StepReport> reports(losses_.size());
  const auto all = numbers_->get();
  auto next = all.begin();
  for (std::size_t number = 0; number < reports.size(); ++number)
    for (std::size_t i = 0; i < losses_[number].size(); ++i) {
      auto& own = reports[number].losses;
      if (i < count()) own.emplace_back(losses_[number][i].first, 0);
      own[i % count()].second += *next++;
    }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(decisive_.numel());
  reports[0].measured.assign(next, end);
  next = end;
  for (std::size_t number = 0; number < metrics_.size(); ++number) {
    std::vector<double> values;
    for (const auto& value : metrics_[number].numbers())
      values.push_back(is_there(value) ? *next++ : value.item<double>());
    reports[number].metrics = metrics_[number].sums(values.data());
  }
  return {std::move(reports), next != all.end() && *next != 0};
}

}  // namespace millrace
