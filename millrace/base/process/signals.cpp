#include "millrace/base/process/signals.h"

#include <pthread.h>

namespace millrace {
namespace {

void set_mask(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int each : kStopSignals) sigaddset(&signals, each);
  ::pthread_sigmask(how, &signals, nullptr);
}

/// Unlike SIG_IGN, a handler is not inherited by the programs that this one starts.
void survive(int signal) {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

std::string_view signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "";
  }
}

void hold_stop_signals() { set_mask(SIG_BLOCK); }

void release_stop_signals() { set_mask(SIG_UNBLOCK); }

void survive_file_size_limit() { survive(SIGXFSZ); }

void survive_broken_pipes() { survive(SIGPIPE); }

}  // namespace millrace
