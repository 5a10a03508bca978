#include "millrace/base/process/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "millrace/base/clock.h"
#include "millrace/base/events/last_events.h"

namespace millrace {
namespace {

std::atomic<int> noted = 0;
std::atomic<Clock::rep> noted_at = 0;
std::atomic<int> exit_code = 0;     // exit code of ExitAtSignal
std::atomic<bool> is_done = false;  // set by work_is_done
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<Clock::rep>::is_always_lock_free,
              "signal handlers may use lock-free atomics only");
// Set before the handlers that read them are installed.
std::string_view why_at_exit;
int exit_code_when_given_up = 0;
std::string words_when_given_up;

Clock::rep now() { return Clock::now().time_since_epoch().count(); }

void write_to_stderr(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void note_signal(int signal) {
  if (signal == SIGHUP && noted != 0) return;
  noted_at = now();
  noted = signal;
  for (const int each : kStopSignals)
    if (each != SIGHUP) ::signal(each, SIG_DFL);
  write_last_events_at(signal, signal_name(signal));
}

extern "C" void exit_at_signal(int signal) {
  if (!is_done) {
    write_to_stderr("trainer: ");
    write_to_stderr(signal_name(signal));
    write_to_stderr(": ");
    write_to_stderr(why_at_exit);
    write_to_stderr("\n");
  }
  ::_exit(exit_code);
}

extern "C" void give_up(int) {
  write_to_stderr(words_when_given_up);
  ::_exit(exit_code_when_given_up);
}

struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return action;
}

void set_mask(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : kStopSignals) sigaddset(&signals, each);
  ::pthread_sigmask(how, &signals, nullptr);
}

/// Installs an empty handler. Unlike SIG_IGN, it is not inherited by child processes.
void survive(int signal) {
  const auto action = action_of([](int) {});
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

std::string_view signal_name(int signal) {
  constexpr std::array<std::string_view, kStopSignals.size()> kNames = {"SIGINT", "SIGTERM",
                                                                        "SIGHUP", "SIGUSR1"};
  for (std::size_t i = 0; i < kStopSignals.size(); ++i)
    if (kStopSignals[i] == signal) return kNames[i];
  return "";
}

void hold_stop_signals() { set_mask(SIG_BLOCK); }

void release_stop_signals() { set_mask(SIG_UNBLOCK); }

void survive_file_size_limit() { survive(SIGXFSZ); }

void survive_broken_pipes() { survive(SIGPIPE); }

SignalHandling::SignalHandling(void (*handler)(int)) {
  give_signal_stack();
  const auto action = action_of(handler);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    ::sigaction(kStopSignals[i], nullptr, &before_[i]);
    if (kStopSignals[i] != SIGHUP || before_[i].sa_handler != SIG_IGN)
      ::sigaction(kStopSignals[i], &action, nullptr);
  }
}

SignalHandling::~SignalHandling() {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i)
    ::sigaction(kStopSignals[i], &before_[i], nullptr);
}

StopSignals::StopSignals() : SignalHandling((noted = 0, note_signal)) {}

StopSignals::~StopSignals() { ::alarm(0); }

std::string StopSignals::received() { return std::string(signal_name(noted)); }

int StopSignals::number() { return noted; }

// The handlers stay installed, since this process may still receive the same signal.
void StopSignals::note(int signal) {
  if (noted != 0) return;
  noted_at = now();
  noted = signal;
}

double StopSignals::seconds_ago() {
  return seconds_since(Clock::time_point(Clock::duration(noted_at.load())));
}

void StopSignals::give_up_after(unsigned seconds, int code, std::string last_words) {
  exit_code_when_given_up = code;
  words_when_given_up = std::move(last_words);
  const auto action = action_of(give_up);
  ::sigaction(SIGALRM, &action, nullptr);
  ::alarm(seconds);
}

ExitAtSignal::ExitAtSignal(int code, std::string_view why)
    : SignalHandling((is_done = false, exit_code = code, why_at_exit = why, exit_at_signal)) {}

void ExitAtSignal::work_is_done(int code) {
  exit_code = code;
  is_done = true;
}

}  // namespace millrace
