#include "millrace/trainer/cluster/micro_batches.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"

namespace millrace {
namespace {

/// Number of this thread's micro-batch. libtorch passes it to the device's threads that run the
/// backward pass of the micro-batch.
struct OwnNumber final : c10::DebugInfoBase {
  explicit OwnNumber(std::size_t number) : value(number) {}
  std::size_t value;
};
constexpr auto kOwnNumber = c10::DebugInfoKind::PRODUCER_INFO;

/// Ends a micro-batch because another has failed, whose own error is reported.
struct OtherFailed : Error {
  using Error::Error;
};

}  // namespace

MicroBatches::MicroBatches(std::size_t count, std::size_t at_once, at::Device device)
    : count_(count), at_once_(at_once), device_(device), given_(count) {}

std::size_t MicroBatches::current() {
  const auto* own = static_cast<const OwnNumber*>(c10::ThreadLocalDebugInfo::get(kOwnNumber));
  return own ? own->value : 0;
}

void MicroBatches::run(const std::function<void(std::size_t number)>& work) {
  if (count_ == 1) return work(0);
  ended_ = 0;
  failure_ = nullptr;
  std::optional<c10::Stream> stream;
  if (!device_.is_cpu()) stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  const auto compute = [&](std::size_t number) {
    const c10::DebugInfoGuard own(kOwnNumber, std::make_shared<OwnNumber>(number));
    // A new thread starts on the default stream of the first GPU.
    const c10::OptionalStreamGuard on(stream);
    at::init_num_threads();  // sets a new thread to the process's number of threads
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
          "a micro-batch has ended while another is in '{}'; all must compute the same sums",
          what_)));
    lock.unlock();
    changed_.notify_all();
  };
  {
    std::vector<std::jthread> threads;  // joined at the end of this scope
    try {
      for (std::size_t number = 0; number < count_; ++number) threads.emplace_back(compute, number);
    } catch (...) {
      fail(std::current_exception());  // the threads that have started would otherwise wait forever
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
        fmt::format("one micro-batch is in '{}', another in '{}'; all must compute the same sums",
                    what_, what));
  if (ended_ > 0)
    throw Error(fmt::format(
        "a micro-batch has ended while another is in '{}'; all must compute the same sums", what));
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
  if (all_.count() > 1 && !values.is_cpu())
    throw ConfigError(
        fmt::format("train.micro_batch: on this device, norm = \"sync_bn\" does not support {} "
                    "micro-batches per rank; start one rank per micro-batch of a step, with "
                    "data.batch_size = train.micro_batch, or use \"gn\" or a frozen norm",
                    all_.count()));
  if (all_.count() == 1) return over_ranks_(values);
  values.copy_(all_.join("statistics", values, [&](const std::vector<at::Tensor>& all) {
    const auto sum =
        tree_sum(all.size(), [&](std::size_t i) { return i == 0 ? all[i].clone() : all[i]; });
    over_ranks_(sum);
    return sum;
  }));
}

bool MicroBatchSum::updates_statistics() {
  has_moved_ = true;
  return MicroBatches::current() == 0;
}

}  // namespace millrace
