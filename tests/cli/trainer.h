// Runs the real executable as a child process in a temporary folder with a small data set.
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

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// Words of a command line, or K=V settings for --set.
using Words = std::vector<std::string>;

inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Quotes words for a shell.
inline std::string quoted(const Words& words) {
  std::string line;
  for (const auto& word : words) {
    line += " '";
    for (const char c : word) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += "'";
  }
  return line;
}

/// Returns `key='path'` for --set.
inline std::string setting(const std::string& key, const fs::path& path) {
  return key + "='" + path.string() + "'";
}

/// Returns `command --set a --set b ...`.
inline Words with_settings(Words command, const Words& settings) {
  for (const auto& one : settings) command.insert(command.end(), {"--set", one});
  return command;
}

/// Settings that turn off evaluation and pictures.
inline const Words kTrainOnly = {"callbacks.evaluate.enabled=false",
                                 "callbacks.pictures.enabled=false"};

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

/// Writes a configuration whose first line inherits from configs/maskrcnn.toml.
inline fs::path write_heir(const fs::path& file, const std::string& toml) {
  write_text(file, "base = '" + fs::absolute("configs/maskrcnn.toml").string() + "'\n" + toml);
  return file;
}

struct Outcome {
  int exit_code = -1;  // -1 = killed by a signal
  std::string out, err;

  /// Parses the last line of standard output as JSON.
  Json json() const { return Json::parse(out.substr(out.find_last_of('\n', out.size() - 2) + 1)); }
};

/// Expects exit code 0 and returns the outcome.
inline Outcome successful(Outcome outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  return outcome;
}

/// Expects an error message "trainer: error: ..." that contains `part`, and empty standard output.
inline void expect_error(const Outcome& outcome, int exit_code, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("trainer: error: "), HasSubstr(part)));
  EXPECT_EQ(outcome.out, "");
}

/// Starts a program with its output in files opened with `mode`: O_TRUNC or O_APPEND. Empty `out` =
/// standard output is inherited.
inline pid_t spawn(Words command, const fs::path& out, const fs::path& err, int mode) {
  std::vector<char*> argv;
  for (auto& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  mode |= O_WRONLY | O_CREAT;
  if (!out.empty()) posix_spawn_file_actions_addopen(&files, 1, out.c_str(), mode, 0600);
  posix_spawn_file_actions_addopen(&files, 2, err.c_str(), mode, 0600);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, argv[0], &files, nullptr, argv.data(), environ), 0)
      << "cannot run " << argv[0];
  posix_spawn_file_actions_destroy(&files);
  return child;
}

/// A test with a temporary folder.
class Trainer : public ::testing::Test {
 protected:
  fs::path in_folder(const std::string& name) const { return folder_ / name; }

  /// Runs `trainer` with these arguments in the project's root.
  Outcome trainer(const Words& arguments) const { return run(MILLRACE_TRAINER, arguments); }

  Outcome run(const fs::path& program, const Words& arguments) const {
    return finish(start(program, arguments));
  }

  /// Starts a program. Only one may run at a time; finish() waits for its end.
  pid_t start(const fs::path& program, const Words& arguments) const {
    return spawn(Words{program} + arguments, in_folder("stdout"), in_folder("stderr"), O_TRUNC);
  }

  Outcome finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(in_folder("stdout")),
            read_text(in_folder("stderr"))};
  }

  /// Makes a sample data set of 8 training and 4 validation images in <folder>/data, unless it
  /// exists. Returns its folder.
  fs::path make_data() const {
    const auto root = in_folder("data");
    if (!fs::exists(root))
      successful(trainer({"sample", "--out", root, "--train", "8", "--val", "4"}));
    return root;
  }

  /// Returns a command for configs/maskrcnn.toml with a small, fast model and the data set in
  /// `data`.
  static Words on(const fs::path& data, const Words& command, const Words& overrides = {}) {
    return with_settings(command + Words{"configs/maskrcnn.toml"},
                         Words{setting("data.root", data), "data.short_side=96",
                               "data.max_side=160", "model.backbone.width=16"} +
                             overrides);
  }

 private:
  Scratch folder_;
};

/// A test with a small data set that it may damage.
class TrainerOnData : public Trainer {
 protected:
  fs::path data_ = make_data();
  fs::path annotations_ = data_ / "annotations" / "instances_train2017.json";
  fs::path val_annotations_ = data_ / "annotations" / "instances_val2017.json";

  /// Edits the annotations of a split as JSON.
  template <class Change>
  static void edit(const fs::path& annotations, Change change) {
    auto json = read_json(annotations);
    change(json);
    write_json(annotations, json);
  }

  fs::path first_image() const {
    return data_ / "train2017" / read_json(annotations_)["images"][0]["file_name"];
  }
};

}  // namespace millrace::testing
