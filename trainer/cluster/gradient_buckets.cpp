#include "millrace/trainer/cluster/gradient_buckets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "millrace/trainer/cluster/micro_batches.h"

namespace millrace {

TensorTree::TensorTree(std::size_t count) { place(1, count); }

void TensorTree::place(std::size_t node, std::size_t count) {
  if (nodes_.size() <= node) nodes_.resize(node + 1);
  if (count == 1) return places_.push_back(node);
  const auto lower = (count + 1) / 2;
  place(2 * node, lower);
  place(2 * node + 1, count - lower);
}

void TensorTree::add(std::size_t number, const at::Tensor& more) {
  const c10::NoGradGuard no_graph;
  auto& value = nodes_[places_[number]].value;
  value = value.defined() ? value + more : more;
}

void TensorTree::complete(std::size_t number) {
  const c10::NoGradGuard no_graph;
  auto node = places_[number];
  if (nodes_[node].is_complete) return;
  nodes_[node].is_complete = true;
  for (; node > 1 && nodes_[node ^ 1].is_complete; node /= 2) {
    auto &lower = nodes_[node & ~std::size_t{1}], &upper = nodes_[node | 1],
         &sum = nodes_[node / 2];
    if (lower.value.defined() && upper.value.defined())
      sum.value = lower.is_sum ? lower.value.add_(upper.value) : lower.value + upper.value;
    else if (lower.value.defined() || upper.value.defined())
      sum.value = (lower.value.defined() ? lower.value : upper.value) + 0;  // -0 becomes 0
    lower.value = upper.value = at::Tensor();
    sum.is_complete = sum.is_sum = true;
  }
}

/// Takes a micro-batch's gradient before libtorch accumulates it, which concurrent micro-batches
/// would otherwise do at the same time.
struct GradientBuckets::Taker final : torch::autograd::FunctionPreHook {
  Taker(GradientBuckets& buckets, std::size_t slot) : buckets_(buckets), slot_(slot) {}
  torch::autograd::variable_list operator()(
      const torch::autograd::variable_list& gradients) override {
    if (!buckets_.slots_[slot_].tree || !gradients[0].defined()) return gradients;
    buckets_.take(slot_, gradients[0]);
    return {at::Tensor()};
  }

 private:
  GradientBuckets& buckets_;
  std::size_t slot_;
};

/// Runs after a backward pass has accumulated a parameter's gradient.
struct GradientBuckets::Hook final : torch::autograd::PostAccumulateGradHook {
  Hook(GradientBuckets& buckets, std::size_t slot) : buckets_(buckets), slot_(slot) {}
  void operator()(const torch::autograd::Variable& value) override {
    if (!buckets_.is_last_ || buckets_.numbers_ > 1) return;
    buckets_.fill(slot_, value.grad());
    buckets_.begin_sums();
  }

 private:
  GradientBuckets& buckets_;
  std::size_t slot_;
};

GradientBuckets::GradientBuckets(const Parameters& parameters, GradientSync& sync,
                                 at::ScalarType exchanged, std::int64_t first_bytes,
                                 std::int64_t bytes)
    : sync_(sync) {
  for (const auto& parameter : parameters)
    if (parameter.trainable()) slots_.push_back({.value = parameter.value});

  std::vector<std::int64_t> sizes;  // sizes of the buckets, in values
  for (std::size_t i = slots_.size(); i-- > 0;) {
    const auto limit = (sizes.size() == 1 ? first_bytes : bytes) / std::int64_t{sizeof(float)};
    if (sizes.empty() || sizes.back() >= limit) sizes.push_back(0);
    slots_[i].bucket = sizes.size() - 1;
    sizes.back() += slots_[i].value.numel();
  }
  for (const auto size : sizes) {
    const auto options = slots_[0].value.options().requires_grad(false);
    Bucket bucket{.values = at::empty({size}, options)};
    bucket.sent =
        exchanged == at::kFloat ? bucket.values : at::empty({size}, options.dtype(exchanged));
    buckets_.push_back(std::move(bucket));
  }
  std::vector<std::int64_t> filled(sizes.size());
  for (std::size_t i = slots_.size(); i-- > 0;) {
    auto& slot = slots_[i];
    auto& start = filled[slot.bucket];
    slot.sum =
        buckets_[slot.bucket].values.as_strided(slot.value.sizes(), slot.value.strides(), start);
    start += slot.value.numel();
    buckets_[slot.bucket].size += 1;
    torch::autograd::impl::set_post_acc_grad_hooks(slot.value, std::make_unique<Hook>(*this, i));
    auto taker = std::make_unique<Taker>(*this, i);
    slot.taker = taker.get();
    // Not add_hook, which allows only one hook per parameter.
    torch::autograd::impl::hooks(slot.value).push_back(std::move(taker));
  }
}

GradientBuckets::~GradientBuckets() {
  for (const auto& slot : slots_) {
    torch::autograd::impl::set_post_acc_grad_hooks(slot.value, nullptr);
    std::erase_if(torch::autograd::impl::hooks(slot.value),
                  [&](const auto& hook) { return hook.get() == slot.taker; });
  }
}

void GradientBuckets::begin(std::size_t numbers) {
  numbers_ = numbers;
  first_ = 0;
  if (numbers == 1) return;
  for (auto& slot : slots_) slot.tree.emplace(numbers);
}

void GradientBuckets::take(std::size_t index, const at::Tensor& gradient) {
  auto& slot = slots_[index];
  const auto number = first_ + MicroBatches::current();
  const std::lock_guard lock(mutex_);
  slot.tree->add(number, gradient);
  if (!is_last_) return;
  slot.tree->complete(number);
  for (std::size_t other = 0; other < numbers_; ++other)
    if (!slot.tree->is_complete(other)) return;
  fill(index, slot.tree->sum());
  begin_sums();
}

void GradientBuckets::fill(std::size_t index, const at::Tensor& gradient) {
  auto& slot = slots_[index];
  const c10::NoGradGuard no_graph;
  slot.sum.copy_(gradient);
  slot.tree.reset();
  // Frees the original gradient for the rest of the backward pass.
  slot.value.mutable_grad() = slot.sum;
  slot.is_filled = true;
  buckets_[slot.bucket].filled += 1;
}

void GradientBuckets::begin_sums() {
  for (; begun_ < buckets_.size() && buckets_[begun_].filled == buckets_[begun_].size; ++begun_) {
    auto& [values, sent, size, filled] = buckets_[begun_];
    if (!sent.is_same(values)) sent.copy_(values);
    sync_.begin_sum(sent, "gradients");
  }
}

std::string GradientBuckets::finish() {
  std::string present;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    auto& slot = slots_[i];
    if (slot.tree) {  // not every micro-batch has a gradient of this parameter
      for (std::size_t number = 0; number < numbers_; ++number) slot.tree->complete(number);
      slot.value.mutable_grad() = slot.tree->sum();
      slot.tree.reset();
    }
    const bool has_gradient = slot.value.grad().defined();
    present += has_gradient ? '1' : '0';
    if (slot.is_filled) continue;
    if (has_gradient) {
      fill(i, slot.value.grad());
    } else {
      slot.sum.zero_();
      buckets_[slot.bucket].filled += 1;
    }
  }
  begin_sums();
  sync_.wait();
  for (auto& bucket : buckets_) {
    if (!bucket.sent.is_same(bucket.values)) bucket.values.copy_(bucket.sent);
    bucket.filled = 0;
  }
  for (auto& slot : slots_) slot.is_filled = false;
  begun_ = 0;
  is_last_ = false;
  return present;
}

void GradientBuckets::set_gradients(const std::string& present) const {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    slots_[i].value.mutable_grad() = present[i] == '1' ? slots_[i].sum : at::Tensor();
}

}  // namespace millrace
