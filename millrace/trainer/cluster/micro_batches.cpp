#include "millrace/trainer/cluster/micro_batches.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <thread>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"

namespace millrace {
namespace {

thread_local std::size_t own_number = 0;

/// Ends a micro-batch because another has failed, which says why.
struct OtherFailed : Error {
  using Error::Error;
};

}  // namespace

MicroBatches::MicroBatches(std::size_t count, std::size_t at_once)
    : count_(count), at_once_(at_once), given_(count) {}

std::size_t MicroBatches::current() { return own_number; }

void MicroBatches::run(const std::function<void(std::size_t number)>& work) {
  if (count_ == 1) return work(0);
  ended_ = 0;
  failure_ = nullptr;
  const auto compute = [&](std::size_t number) {
    own_number = number;
    at::init_num_threads();  // of a new thread: what the process has been given
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return computing_ < at_once_; });
    ++computing_;
    lock.unlock();
    try {
      work(number);
    } catch (const OtherFailed&) {
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
    --computing_;
    ++ended_;
    if (arrived_ > 0 && !failure_)
      failure_ = std::make_exception_ptr(Error(fmt::format(
          "a micro-batch has ended while another is in '{}': each must ask for the same sums",
          what_)));
    lock.unlock();
    changed_.notify_all();
  };
  {
    std::vector<std::jthread> threads;  // joined here
    try {
      for (std::size_t number = 0; number < count_; ++number) threads.emplace_back(compute, number);
    } catch (...) {
      fail(std::current_exception());  // those that have begun would wait for ever
    }
  }
  arrived_ = 0;
  if (failure_) std::rethrow_exception(failure_);
}

void MicroBatches::fail(std::exception_ptr why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
  }
  changed_.notify_all();
}

void MicroBatches::meet(std::string_view what, const std::function<void()>& together) {
  if (count_ == 1) return together();
  const auto check = [this] {
    if (failure_) throw OtherFailed("another micro-batch has failed");
  };
  std::unique_lock lock(mutex_);
  check();
  if (arrived_ > 0 && what != what_)
    throw Error(
        fmt::format("one micro-batch is in '{}', another in '{}': each must ask for the same sums",
                    what_, what));
  if (ended_ > 0)
    throw Error(fmt::format(
        "a micro-batch has ended while another is in '{}': each must ask for the same sums", what));
  what_ = what;
  if (++arrived_ == count_) {
    lock.unlock();
    together();
    lock.lock();
    arrived_ = 0;
    ++meetings_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  const auto meeting = meetings_;
  --computing_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return failure_ || meetings_ != meeting; });
  changed_.wait(lock, [this] { return computing_ < at_once_; });
  ++computing_;
  if (meetings_ == meeting) check();
}

void MicroBatchSum::operator()(const at::Tensor& values) {
  values.copy_(all_.join("statistics", values, [&](const std::vector<at::Tensor>& all) {
    const auto sum =
        tree_sum(all.size(), [&](std::size_t i) { return i == 0 ? all[i].clone() : all[i]; });
    over_ranks_(sum);
    return sum;
  }));
}

bool MicroBatchSum::moves_statistics() {
  has_moved_ = true;
  return MicroBatches::current() == 0;
}

}  // namespace millrace
