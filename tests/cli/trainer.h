// Runs the real executable as a child process, in a temporary folder with a small data set.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/scratch.h"

namespace millrace::testing {

using Json = nlohmann::json;
namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;  // -1: killed by a signal
  std::string out, err;

  /// The last line of standard output as JSON.
  Json json() const { return Json::parse(out.substr(out.find_last_of('\n', out.size() - 2) + 1)); }
};

inline std::string read_text(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

inline void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

inline Json read_json(const fs::path& file) { return Json::parse(read_text(file)); }
inline void write_json(const fs::path& file, const Json& json) { write_text(file, json.dump()); }

/// A folder that is gone when the test ends.
class Trainer : public ::testing::Test {
 protected:
  fs::path in_folder(const std::string& name) const { return folder_ / name; }

  /// `trainer` with these arguments, run in the project's root.
  Outcome trainer(std::vector<std::string> arguments) const {
    return run(MILLRACE_TRAINER, std::move(arguments));
  }

  Outcome run(const fs::path& program, std::vector<std::string> arguments) const {
    return finish(start(program, std::move(arguments)));
  }

  /// Starts a program; one at a time, until `finish` has seen its end.
  pid_t start(const fs::path& program, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program.string());
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const auto out = in_folder("stdout"), err = in_folder("stderr");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ), 0)
        << "cannot run " << argv[0];
    posix_spawn_file_actions_destroy(&files);
    return child;
  }

  Outcome finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(in_folder("stdout")),
            read_text(in_folder("stderr"))};
  }

  /// A sample data set of 8 + 4 images in <folder>/data.
  fs::path make_data() const {
    const auto root = in_folder("data");
    const auto made = trainer({"sample", "--out", root.string(), "--train", "8", "--val", "4"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    return root;
  }

  /// The arguments of a command on configs/maskrcnn.toml with a small, quick model on `data`.
  static std::vector<std::string> on(const fs::path& data, std::vector<std::string> command,
                                     const std::vector<std::string>& overrides = {}) {
    command.push_back("configs/maskrcnn.toml");
    const auto set = [&](const std::string& override) {
      command.insert(command.end(), {"--set", override});
    };
    set("data.root=\"" + data.string() + "\"");
    set("data.short_side=96");
    set("data.max_side=160");
    set("model.backbone.width=16");
    for (const auto& override : overrides) set(override);
    return command;
  }

 private:
  Scratch folder_;
};

/// One message, in the form in which people and scripts expect it.
inline void expect_error(const Outcome& outcome, int exit_code, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("trainer: error: "));
  EXPECT_THAT(outcome.err, ::testing::HasSubstr(part));
  EXPECT_EQ(outcome.out, "");
}

}  // namespace millrace::testing
