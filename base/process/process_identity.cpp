#include "millrace/base/process/process_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace millrace {
namespace {

struct ProcessStat {
  char state = '?';
  std::int64_t start = 0;
};

/// Reads /proc/NUMBER/stat; nullopt if it cannot be read.
std::optional<ProcessStat> read_stat(std::int64_t number) {
  std::ifstream file(fmt::format("/proc/{}/stat", number));
  std::string text;
  std::getline(file, text);
  // Field 2 is the program's name in parentheses, field 3 the state and field 22 the start time.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  if (!(fields >> stat.start)) return std::nullopt;
  return stat;
}

/// Returns the boot id and the PID namespace.
std::string own_system() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code unknown;
  return boot + " " + std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string();
}

}  // namespace

ProcessIdentity own_identity() {
  const auto stat = read_stat(::getpid());
  return {own_system(), ::getpid(), stat ? stat->start : 0};
}

std::optional<bool> is_running(const ProcessIdentity& process) {
  if (process.system != own_system()) return std::nullopt;
  const auto stat = read_stat(process.number);
  if (!stat) {  // not running, or a process of another user
    const bool exists = ::kill(static_cast<pid_t>(process.number), 0) == 0 || errno != ESRCH;
    return exists ? std::nullopt : std::optional(false);
  }
  constexpr char kZombie = 'Z', kDead = 'X';
  return stat->start == process.start && stat->state != kZombie && stat->state != kDead;
}

}  // namespace millrace
