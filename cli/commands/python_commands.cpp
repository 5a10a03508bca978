// Commands that are written in Python, as modules of the package `millrace` (python/millrace):
// study, diff and import-config. Their arguments are declared here for --help, shells and the
// manual page.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/cli/command.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// Python code that runs a module. It puts the package's folder, if known, into the search path and
/// removes the working folder, which may contain files of any name. `python3 -m` cannot do this.
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
    version = "python3 is " + sys.version.split()[0] + "; 3.10 or later is needed"
    missing = (sys.executable + " has no module millrace." + name + ": run `pip install ./python` "
               "in a checkout of Millrace, or install a wheel made by `make wheel`")
    sys.exit("trainer: error: this command is written in Python: " + (version if found else missing))
runpy.run_module("millrace." + name, run_name="__main__", alter_sys=True)
)";

/// Returns the folder of the Python package that belongs to a program in `bin`, in a build or an
/// installation; empty if none has the module.
fs::path package_folder(const fs::path& bin, const std::string& name) {
  for (const auto* folder : {"python", "share/millrace/python"}) {
    const auto package = bin.parent_path() / folder;
    if (fs::exists(package / "millrace" / name) ||
        fs::exists(package / "millrace" / (name + ".py")))
      return package;
  }
  return {};
}

/// Returns the words of this process's command line after the name of the command, unchanged (CLI11
/// splits texts such as "[1, 2]"), preceded by --verbose or --quiet if set.
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

/// Replaces this process by `python3 -m millrace.MODULE` with the arguments of `trainer COMMAND`.
/// Uses the package of this build or installation, otherwise the one that python3 finds. The
/// environment variable MILLRACE_TRAINER gives it the path of this program. Blocked stop signals
/// stay blocked. Throws Error that explains what to install if there is no python3.
[[noreturn]] void run_python_module(const std::string& module, const std::string& command) {
  const auto bin = fs::read_symlink("/proc/self/exe").parent_path();
  ::setenv("MILLRACE_TRAINER", (bin / "trainer").c_str(), /*overwrite=*/1);
  // -B: writes no compiled files beside those of a package.
  std::vector<std::string> words = {"python3", "-B",   "-c",
                                    kStart,    module, package_folder(bin, module)};
  const auto arguments = words_behind(command);
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  throw Error(
      fmt::format("this command is written in Python, but python3 cannot be started: {}; install "
                  "Python 3.10 or later (`apt install python3`)",
                  std::strerror(errno)));
}

/// The module parses the command line again, so no other values are needed here.
struct PythonArguments {
  bool json = false;
};

int diff(const PythonArguments&) { run_python_module("diff", "diff"); }
int study(const PythonArguments&) { run_python_module("study", "study"); }
int import_config(const PythonArguments&) { run_python_module("migrate", "import-config"); }

/// Declares an option or argument of type T whose value is ignored.
template <class T>
CLI::Option* add_value(CLI::App& command, const std::string& name, const std::string& doc) {
  return command.add_option_function<T>(
      name, [](const T&) {}, doc);
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "diff", diff);
  add_value<Words>(command, "run", "two run folders, also of running or killed runs")
      ->required()
      ->expected(2)
      ->type_name("RUN");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer diff runs/maskrcnn-1 runs/maskrcnn-2"});
}

void add_study(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "study", study, /*handles_signals=*/true);
  add_value<std::string>(command, "CONFIG",
                         "TOML file; or the folder of a study, to print its table")
      ->required();
  add_value<std::int64_t>(command, "--seeds",
                          "number of trainings per variant, with train.seed = 1 .. N")
      ->type_name("N")
      ->check(positive());
  add_value<Words>(command, "--vary",
                   "values of a key, such as optimizer.lr=0.01,0.02; if repeated, every "
                   "combination is a variant. Variants are compared with the first")
      ->type_name("K=A,B")
      ->allow_extra_args(false);
  add_value<Words>(command, "--set", "value of a configuration key in all runs; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false);
  add_value<std::string>(
      command, "--out",
      "folder of the study, to start or resume; default: studies/ and the name of CONFIG")
      ->type_name("DIR");
  add_value<std::int64_t>(command, "--jobs",
                          "number of concurrent trainings, which share the cores")
      ->type_name("J")
      ->default_str("1")
      ->check(positive());
  add_json_flag(command, arguments.json);
  add_examples(command,
               {"trainer study configs/maskrcnn.toml --seeds 5",
                "trainer study configs/maskrcnn.toml --seeds 5 --vary optimizer.lr=0.01,0.02",
                "trainer study configs/maskrcnn.toml --seeds 3 --vary optimizer.lr=0.01,0.02 "
                "--set train.epochs=2 --out studies/lr --jobs 2",
                "trainer study studies/lr --json"});
}

void add_import_config(CLI::App& app, Action& action) {
  auto& command = add_subcommand(app, action, "import-config", import_config).first;
  add_value<std::string>(
      command, "FILE", "recipe; the files that it inherits from are read, too. Its code is not run")
      ->required();
  add_value<Words>(command, "OVERRIDES",
                   "values that override the file: KEY VALUE ... as in detectron2's command lines, "
                   "key=value ... as in MMDetection's --cfg-options");
  add_value<std::string>(command, "--out", "file to write instead of standard output")
      ->type_name("FILE");
  add_value<std::int64_t>(command, "--gpus",
                          "number of GPUs of the recipe, one process each: SOLVER.IMS_PER_BATCH is "
                          "divided by it (default: 1), MMDetection's batch size is multiplied by "
                          "it (default: from its auto_scale_lr, else 8)")
      ->type_name("N")
      ->check(positive());
  add_value<std::int64_t>(command, "--images",
                          "number of training images with an object, to convert iterations to "
                          "epochs; known for COCO 2017")
      ->type_name("N")
      ->check(positive());
  add_examples(
      command,
      {"trainer import-config configs/COCO-Detection/faster_rcnn_R_50_FPN_1x.yaml --gpus 8",
       "trainer import-config mine.yaml --images 2965 --out mine.toml SOLVER.BASE_LR 0.01",
       "trainer import-config configs/mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py --out "
       "mask_rcnn.toml"});
}

}  // namespace millrace::cli
