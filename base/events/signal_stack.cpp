#include "millrace/base/events/signal_stack.h"

#include <signal.h>

#include <cstddef>
#include <memory>

namespace millrace {
namespace {

/// The signal stack of the thread that creates it.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    stack_t own{};
    own.ss_sp = memory_.get();
    own.ss_size = kBytes;
    ::sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (!memory_) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 << 10;  // the processor's registers take up to 12 KiB

  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

void give_signal_stack() { thread_local const SignalStack stack; }

}  // namespace millrace
