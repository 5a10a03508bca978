#include "millrace/base/process/stop_signals.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace millrace {
namespace {

/// Runs `work` in a child process; returns the child's wait status and standard error.
std::pair<int, std::string> in_process(const std::function<void()>& work) {
  int said[2];
  EXPECT_EQ(::pipe(said), 0);
  const auto child = ::fork();
  if (child == 0) {
    ::dup2(said[1], STDERR_FILENO);
    work();
    ::_exit(0);
  }
  ::close(said[1]);
  std::string text;
  for (char byte = 0; ::read(said[0], &byte, 1) == 1;) text += byte;
  ::close(said[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {status, text};
}

/// Expects `holds` to return true in a child process.
void expect_in_process(const std::function<bool()>& holds) {
  EXPECT_EQ(in_process([&] { ::_exit(holds() ? 0 : 1); }).first, 0);
}

TEST(StopSignals, RecordFirstAndDieFromSecond) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    const auto [status, said] = in_process([&] {
      const StopSignals signals;
      std::raise(signal);
      if (StopSignals::number() != signal || StopSignals::received() != signal_name(signal)) return;
      std::raise(SIGTERM);
    });
    ASSERT_TRUE(WIFSIGNALED(status)) << signal_name(signal);
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
  }
}

#if defined(__x86_64__)
/// Sends a signal to this thread while its stack pointer is `stack_pointer`. Some oneDNN kernels
/// set it to an address outside the stack.
void raise_with(void* stack_pointer, int signal) {
  long result = SYS_tgkill;
  asm volatile(
      "mov %%rsp, %%rbx\n\t"
      "mov %[there], %%rsp\n\t"
      "syscall\n\t"
      "mov %%rbx, %%rsp"
      : "+a"(result)
      : "D"(::getpid()), "S"(::syscall(SYS_gettid)), "d"(signal), [there] "r"(stack_pointer)
      : "rbx", "rcx", "r11", "memory", "cc");
}

TEST(StopSignals, LeaveMemoryAtStackPointerUnchanged) {
  expect_in_process([] {
    constexpr std::size_t kSide = 64 << 10;
    std::vector<char> memory(2 * kSide, 'x');
    const StopSignals signals;
    raise_with(memory.data() + kSide, SIGTERM);
    return StopSignals::number() == SIGTERM &&
           std::ranges::count(memory, 'x') == std::ssize(memory);
  });
}
#endif

TEST(StopSignals, SurviveRepeatedSighup) {
  expect_in_process([] {
    const StopSignals signals;
    for (int i = 0; i < 3; ++i) std::raise(SIGHUP);
    return StopSignals::number() == SIGHUP;
  });
}

TEST(StopSignals, KeepIgnoredSighupIgnored) {
  expect_in_process([] {
    ::signal(SIGHUP, SIG_IGN);
    const StopSignals signals;
    std::raise(SIGHUP);
    return StopSignals::number() == 0;
  });
}

TEST(StopSignals, RestorePreviousHandlers) {
  const auto [status, said] = in_process([] {
    { const StopSignals signals; }
    std::raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(StopSignals, AreDeliveredAfterRelease) {
  expect_in_process([] {
    hold_stop_signals();
    std::raise(SIGTERM);
    const StopSignals signals;
    const bool waits = StopSignals::number() == 0;
    release_stop_signals();
    return waits && StopSignals::number() == SIGTERM;
  });
}

TEST(StopSignals, ExitAfterTimeout) {
  const auto [status, said] = in_process([] {
    const StopSignals signals;
    StopSignals::give_up_after(1, 3, "gone\n");
    while (true) ::pause();
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(said, "gone\n");
}

TEST(ExitAtSignal, PrintsReasonUnlessWorkIsDone) {
  for (const bool is_done : {false, true}) {
    const auto [status, said] = in_process([&] {
      const ExitAtSignal signals(2, "nothing to save");
      if (is_done) ExitAtSignal::work_is_done(0);
      std::raise(SIGINT);
    });
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), is_done ? 0 : 2);
    EXPECT_EQ(said, is_done ? "" : "trainer: SIGINT: nothing to save\n");
  }
}

}  // namespace
}  // namespace millrace
