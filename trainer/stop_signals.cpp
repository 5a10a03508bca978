#include "trainer/stop_signals.h"

#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace millrace {
namespace {

constexpr int kStoppedEarly = 3;
constexpr std::array kSignals{SIGINT, SIGTERM, SIGUSR1};

std::atomic<int> noted = 0;
std::atomic<std::int64_t> noted_at = 0;  // nanoseconds of the monotonic clock
static_assert(std::atomic<int>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may use them");

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

extern "C" void note_signal(int signal) {
  noted_at = now();
  noted = signal;
  for (const int each : kSignals) ::signal(each, SIG_DFL);
}

extern "C" void exit_at_signal(int) {
  constexpr std::string_view kWhy = "trainer: stopped by a signal while no step was under way\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWhy.data(), kWhy.size());
  ::_exit(kStoppedEarly);
}

}  // namespace

SignalHandling::SignalHandling(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
}

SignalHandling::~SignalHandling() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

StopSignals::StopSignals() : SignalHandling((noted = 0, note_signal)) {}

StopSignals::~StopSignals() { ::alarm(0); }

std::string StopSignals::received() {
  if (noted == SIGINT) return "SIGINT";
  if (noted == SIGUSR1) return "SIGUSR1";
  return noted == SIGTERM ? "SIGTERM" : "";
}

int StopSignals::number() { return noted; }

// The handlers stay: the same signal may be on its way to this process.
void StopSignals::note(int signal) {
  if (noted != 0) return;
  noted_at = now();
  noted = signal;
}

double StopSignals::seconds_ago() { return static_cast<double>(now() - noted_at) * 1e-9; }

void StopSignals::give_up_after(unsigned seconds) {
  ::signal(SIGALRM, exit_at_signal);
  ::alarm(seconds);
}

ExitAtSignal::ExitAtSignal() : SignalHandling(exit_at_signal) {}

}  // namespace millrace
