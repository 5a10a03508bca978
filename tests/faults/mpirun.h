// Starts ranks with mpirun and checks that no rank is left running.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/cli/trainer.h"

namespace millrace::testing {

/// Returns the hostname that rank names contain.
inline std::string host() {
  std::string name(64, '\0');
  ::gethostname(name.data(), name.size() - 1);
  return name.c_str();
}

/// Returns the first line of `text` that contains `part`; empty if none does.
inline std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) return line;
  return "";
}

class Mpirun : public Trainer {
 protected:
  Mpirun() {
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);  // as in containers
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
  }

  /// Starts `ranks` ranks of a program; see Trainer::start.
  pid_t start_ranks(int ranks, const fs::path& program, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& options = {}) const {
    std::vector<std::string> all = {"--oversubscribe", "-np", std::to_string(ranks)};
    all.insert(all.end(), options.begin(), options.end());
    all.push_back(program.string());
    all.insert(all.end(), arguments.begin(), arguments.end());
    return start(MILLRACE_MPIEXEC, all);
  }

  Outcome ranks(int ranks, const fs::path& program, const std::vector<std::string>& arguments,
                const std::vector<std::string>& options = {}) const {
    return finish(start_ranks(ranks, program, arguments, options));
  }

  static std::string rank(int number) {
    return "rank " + std::to_string(number) + " (" + host() + ")";
  }

  /// Returns true if this process ends within ten seconds.
  static bool ends(pid_t process) {
    for (int tries = 0; tries < 200; ++tries) {
      if (::kill(process, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
};

}  // namespace millrace::testing
