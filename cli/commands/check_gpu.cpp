// trainer check-gpu: shows the device, its driver and libraries, and runs the tests that need it
// (tests/gpu), whose program is beside this one.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/cli/command.h"
#include "millrace/cli/libtorch.h"
#include "millrace/cli/program.h"
#include "millrace/models/detector/device_kinds.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/run/device.h"

namespace millrace::cli {
namespace {

struct CheckGpuArguments {
  std::string device = "cuda", plugin = "millrace_cuda.so";
  bool small = false, json = false;
  std::vector<std::string> flags;  // flags for gtest
};

/// Returns facts about the device and the host. Throws ConfigError if the device does not exist.
DeviceTools::Facts device_facts(const std::string& device) {
  open_device(device, /*local_rank=*/0);
  DeviceTools::Facts facts{
      {"trainer", program_version()},
      {"libtorch", TORCH_VERSION},
      {"processors of the host", fmt::format("{}", std::thread::hardware_concurrency())}};
  const auto& tools = device_tools().entries();
  if (const auto found = tools.find(device); found != tools.end())
    std::ranges::move(found->second.create()->facts(), std::back_inserter(facts));
  return facts;
}

void print_facts(const CheckGpuArguments& arguments, const DeviceTools::Facts& facts,
                 const std::filesystem::path& tests) {
  if (arguments.json) {
    Json named = Json::object();
    for (const auto& [name, value] : facts) named[name] = value;
    print({{"device", arguments.device}, {"facts", named}, {"tests", tests.string()}});
    return;
  }
  for (const auto& [name, value] : facts) print_formatted("{:<28} {}\n", name, value);
}

int check_gpu(const CheckGpuArguments& arguments) {
  const auto plugin = load_plugin(arguments.plugin, "--plugin");
  if (const auto kinds = device_kinds(); std::ranges::count(kinds, arguments.device) == 0)
    throw ConfigError(fmt::format("--device {}: not provided by the plug-in {}; available: {}",
                                  arguments.device, arguments.plugin, fmt::join(kinds, ", ")));
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "gpu_tests";
  print_facts(arguments, device_facts(arguments.device), tests);
  if (const auto fault = output_fault()) throw Error(*fault);
  if (!std::filesystem::exists(tests))
    throw Error(
        fmt::format("{} not found; install the whole package, or build it (cmake --build FOLDER "
                    "--target gpu_tests)",
                    tests.string()));
  std::vector<std::string> words{tests.string(), "--device", arguments.device, "--plugin", plugin};
  if (arguments.small) words.emplace_back("--small");
  words.insert(words.end(), arguments.flags.begin(), arguments.flags.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (arguments.json) ::dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout has only the JSON object
  add_libtorch_to_library_path();
  ::execv(argv[0], argv.data());
  throw Error(fmt::format("cannot start {}: {}", tests.string(), std::strerror(errno)));
}

}  // namespace

void add_check_gpu(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "check-gpu", check_gpu);
  add_option(command, "flags", arguments.flags, "FLAG",
             "gtest flags after --, such as --gtest_filter");
  command.add_flag("--small", arguments.small, "test with tiny models and few steps");
  command.add_option("--device", arguments.device, "kind of device, as in train.device")
      ->capture_default_str();
  add_option(command, "--plugin", arguments.plugin, "FILE", "plug-in with the device's operators")
      ->capture_default_str();
  command.add_flag("--json", arguments.json,
                   "print the device as one JSON object on one line of standard output; the tests "
                   "write to standard error");
  add_examples(command, {"trainer check-gpu", "trainer check-gpu --small",
                         "trainer check-gpu -- --gtest_filter='Operators.*'"});
}

}  // namespace millrace::cli
