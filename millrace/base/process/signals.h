// The signals that ask a process to end, from its first moment on.
#pragma once

#include <array>
#include <csignal>
#include <string_view>

namespace millrace {

/// SIGHUP comes when the terminal is closed. SIGUSR1 is what mpirun passes on to its ranks at once,
/// and what Slurm is told to send before a job's time is up.
inline constexpr std::array kStopSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// "SIGTERM"; empty for any other signal. Safe in a signal handler.
std::string_view signal_name(int signal);

/// Blocks the signals above, also across exec: one that comes early waits until somebody has
/// decided how to answer it. For the first line of main.
void hold_stop_signals();
/// Lets them through again, those that wait included.
void release_stop_signals();

/// A write that would make a file larger than allowed (ulimit -f) fails with an error and no longer
/// kills.
void survive_file_size_limit();
/// A write to a pipe or socket that nobody reads any more fails with an error and no longer kills.
void survive_broken_pipes();

}  // namespace millrace
