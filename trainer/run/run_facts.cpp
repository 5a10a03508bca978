#include "millrace/trainer/run/run_facts.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/utsname.h>
#include <tbb/version.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <opencv2/core/version.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/child_process.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::array<std::string_view, 17> kKept = {
    "OMP_", "GOMP_", "KMP_",   "ONEDNN_", "DNNL_",   "MKL_",  "OPENBLAS_", "ATEN_",    "TORCH_",
    "TBB_", "OMPI_", "SLURM_", "CUDA_",   "CUBLAS_", "NCCL_", "NVIDIA_",   "MILLRACE_"};
// "orte_" is set by mpirun for its ranks and differs between starts.
constexpr std::array<std::string_view, 8> kLeftOut = {"KEY", "TOKEN",      "SECRET", "PASS",
                                                      "JWT", "CREDENTIAL", "AUTH",   "orte_"};
constexpr auto kGitTimeout = std::chrono::seconds(10);  // timeout for git

/// Returns the words of /proc/self/cmdline.
std::vector<std::string> command_line() {
  std::vector<std::string> words;
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

ordered_json environment() {
  std::vector<std::string> kept;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const auto name = text.substr(0, text.find('='));
    if (std::ranges::any_of(kKept, [&](auto prefix) { return name.starts_with(prefix); }) &&
        std::ranges::none_of(kLeftOut, [&](auto word) { return name.find(word) != name.npos; }))
      kept.emplace_back(text);
  }
  std::ranges::sort(kept);
  auto json = ordered_json::object();
  for (const auto& text : kept)
    if (const auto end = text.find('='); end != text.npos)
      json[text.substr(0, end)] = text.substr(end + 1);
  return json;
}

std::int64_t host_memory_mib() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE) >> 20;
}

ordered_json versions() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> mpi{};
  int length = 0;  // includes the terminating zero in some MPI libraries
  MPI_Get_library_version(mpi.data(), &length);
  utsname system{};
  ::uname(&system);
  return {{"libtorch", TORCH_VERSION},
          {"mkl", at::get_mkl_version()},
          {"onednn", at::get_mkldnn_version()},
          {"openmp", at::get_openmp_version()},
          {"onetbb", TBB_runtime_version()},
          {"opencv", CV_VERSION},
          {"mpi", mpi.data()},
          {"compiler", __VERSION__},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)}};
}

/// Returns the output of a shell command without its last newline; nullopt if it fails or times
/// out.
std::optional<std::string> output_of(const std::string& command,
                                     const std::vector<std::string>& environment) try {
  ChildProcess child(command, environment);
  const auto last = std::chrono::steady_clock::now() + kGitTimeout;
  while (!child.has_ended()) {
    if (std::chrono::steady_clock::now() > last) {
      log_warning("`{}` takes too long; record.json will not contain its output", command);
      return std::nullopt;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!child.failure().empty()) return std::nullopt;
  auto text = child.output();
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
} catch (const Error& problem) {
  log_warning("{}; record.json will not describe the repository", problem.what());
  return std::nullopt;
}

}  // namespace

ordered_json process_facts(const std::string& program) {
  return {{"command", command_line()},
          {"directory", fs::current_path().string()},
          {"program", program},
          {"versions", versions()},
          {"environment", environment()}};
}

ordered_json repository_facts(const fs::path& of, const fs::path& diff) {
  const std::vector<std::string> where = {
      "MILLRACE_GIT_IN=" + fs::absolute(of).parent_path().string(),
      "MILLRACE_GIT_OUT=" + fs::absolute(diff).string()};
  // Disables programs that the repository's own settings name.
  const std::string git = "git -C \"$MILLRACE_GIT_IN\" -c core.fsmonitor=false ";
  const auto found = output_of(git + "rev-parse --show-toplevel HEAD 2>/dev/null", where);
  const auto middle = found ? found->find('\n') : std::string::npos;
  if (middle == std::string::npos) return nullptr;
  ordered_json facts = {{"folder", found->substr(0, middle)},
                        {"revision", found->substr(middle + 1)}};
  const auto compared = output_of(
      git + "diff HEAD --no-color --no-ext-diff --no-textconv > \"$MILLRACE_GIT_OUT\" 2>/dev/null",
      where);
  std::error_code missing;
  if (compared && fs::file_size(diff, missing) > 0 && !missing) {
    facts["diff"] = diff.filename().string();
  } else {
    fs::remove(diff, missing);
    if (compared) facts["diff"] = nullptr;
  }
  return facts;
}

ordered_json rank_facts(const Cluster& cluster, const std::string& device) {
  const ordered_json mine = {{"rank", cluster.rank()},
                             {"host", host_name()},
                             {"local_rank", cluster.local_rank()},
                             {"local_size", cluster.local_size()},
                             {"device", device},
                             {"processor", processor_name()},
                             {"instructions", at::get_cpu_capability()},
                             {"processors", allowed_processors()},
                             {"memory_mib", host_memory_mib()},
                             {"maths_threads", at::get_num_threads()}};
  auto all = ordered_json::array();
  for (const auto& one : cluster.gather("facts of the ranks", mine.dump()))
    all.push_back(ordered_json::parse(one));
  return all;
}

}  // namespace millrace
