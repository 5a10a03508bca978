#include "millrace/cli/python_module.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Runs a module with the package's folder, if it is known, instead of the working folder, in which
/// a file of any name may lie. `python3 -m` cannot.
constexpr auto kStart = R"(
import sys
name, folder = sys.argv[1:3]
del sys.argv[1:3]
sys.path = [folder] * bool(folder) + [one for one in sys.path if one]
import importlib.util, runpy
try:
    found = importlib.util.find_spec("millrace." + name)
except ImportError:
    found = None
if not found or sys.version_info < (3, 10):
    version = "python3 is " + sys.version.split()[0] + ", and 3.10 is needed"
    missing = (sys.executable + " has no module millrace." + name + ": run `pip install ./python` "
               "in a checkout of Millrace, or install a wheel that `make wheel` has made")
    sys.exit("trainer: error: this command is written in Python: " + (version if found else missing))
runpy.run_module("millrace." + name, run_name="__main__", alter_sys=True)
)";

/// The folder with the package that belongs to a program in `bin`: a build's or an installed one;
/// empty: none has the module.
fs::path package_folder(const fs::path& bin, const std::string& name) {
  for (const auto* folder : {"python", "share/millrace/python"}) {
    const auto package = bin.parent_path() / folder;
    if (fs::exists(package / "millrace" / name) ||
        fs::exists(package / "millrace" / (name + ".py")))
      return package;
  }
  return {};
}

/// The words of this process's command line behind the name of the command, as they were given
/// (CLI11 takes texts such as "[1, 2]" apart), with --verbose or --quiet from before it.
std::vector<std::string> words_behind(const std::string& command) {
  std::vector<std::string> words;
  if (log_is_quiet()) words.emplace_back("--quiet");
  if (spdlog::should_log(spdlog::level::debug)) words.emplace_back("--verbose");
  std::ifstream line("/proc/self/cmdline", std::ios::binary);
  bool is_behind = false;
  for (std::string word; std::getline(line, word, '\0'); is_behind |= word == command)
    if (is_behind) words.push_back(word);
  return words;
}

}  // namespace

void run_python_module(const std::string& module, const std::string& command) {
  const auto bin = fs::read_symlink("/proc/self/exe").parent_path();
  ::setenv("MILLRACE_TRAINER", (bin / "trainer").c_str(), /*overwrite=*/1);
  // -B: no compiled files beside those of a package
  std::vector<std::string> words = {"python3", "-B",   "-c",
                                    kStart,    module, package_folder(bin, module)};
  const auto arguments = words_behind(command);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  throw Error(fmt::format(
      "this command is written in Python, and python3 cannot be started: {}; install Python 3.10 "
      "or later (`apt install python3`)",
      std::strerror(errno)));
}

}  // namespace millrace::cli
