// This build, installed into a temporary folder.
#pragma once

#include "tests/cli/trainer.h"

namespace millrace::testing {

class Installed : public Trainer {
 protected:
  Installed() {
    const auto done = run(CMAKE, {"--install", MILLRACE_BUILD, "--prefix", prefix().string()});
    EXPECT_EQ(done.exit_code, 0) << done.err;
  }

  fs::path prefix() const { return in_folder("prefix"); }

  /// Runs the installed `trainer`.
  Outcome installed(std::vector<std::string> arguments) const {
    return run(prefix() / "bin/trainer", std::move(arguments));
  }

  /// Copies a folder out of the repository, so that it cannot use other files there, and builds it.
  Outcome build_copy(const fs::path& folder) const {
    const auto name = folder.filename().string();
    fs::copy(folder, in_folder(name), fs::copy_options::recursive);
    return configure_and_build(name);
  }
  Outcome configure_and_build(const std::string& name) const {
    auto done = run(CMAKE, {"-S", in_folder(name).string(), "-B", built(name).string(),
                            "-DCMAKE_PREFIX_PATH=" + prefix().string()});
    if (done.exit_code != 0) return done;
    return run(CMAKE, {"--build", built(name).string()});
  }
  fs::path built(const std::string& name) const { return in_folder(name) / "build"; }
};

}  // namespace millrace::testing
