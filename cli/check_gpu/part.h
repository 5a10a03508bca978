// The parts of `trainer check-gpu`: each a function that runs in a process of its own.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "millrace/cli/check_gpu/programs.h"
#include "millrace/cli/check_gpu/report.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// What the command line says to every part.
struct CheckGpuOptions {
  std::string device = "cuda";              // one of device_kinds() once the plug-in is loaded
  std::string plugin = "millrace_cuda.so";  // with the device's kernels
  std::filesystem::path out = "check-gpu";  // folder of the report and of all files of the parts
  std::string data;                         // folder of a data set for the real flow; empty: made
  bool small = false;                       // tiny models and few steps: nothing is judged by speed
};

/// A part at work.
class PartRun {
 public:
  /// Opens the plug-in. Throws ConfigError if it cannot be loaded, or there is no such device.
  PartRun(const CheckGpuOptions& options, const std::string& part, PartReport& report,
          double seconds);

  const CheckGpuOptions& options;
  PartReport& report;
  const std::filesystem::path folder;  // of this part's own files; empty when it begins

  /// The device, opened by the first call, and made the thread's current one.
  at::Device device() const;
  bool on_cuda() const { return options.device == "cuda"; }

  /// A shipped recipe on this device, checked; `settings` are K=V.
  Recipe recipe(const std::string& name, const std::vector<std::string>& settings = {}) const;
  /// R50-FPN at 800/1333 in made-up images (--small: a narrow network and small images), the same
  /// as a file.
  std::filesystem::path benchmark_file() const;

  /// The words after a command's configuration: --set for the plug-in and the device, then for
  /// `settings`.
  std::vector<std::string> on_device(const std::vector<std::string>& settings) const;
  /// The same on the CPU.
  static std::vector<std::string> with_settings(const std::vector<std::string>& settings);

  /// Runs `trainer` with these words to its end; `name`: of its log. The timeout is what is left of
  /// this part's, or `most` seconds.
  ProgramEnd trainer(const std::string& name, const std::vector<std::string>& words,
                     double most = 1e9) const;
  std::filesystem::path log(const std::string& name) const { return folder / (name + ".log"); }
  double seconds_left() const;

  /// data.root='...' of the sample data set, which is made in `out` by the first part that asks.
  std::string sample_data() const;

 private:
  std::string plugin_;  // its absolute path
  double until_;
};

struct Part {
  const char* name;
  const char* title;  // what it finds out
  double seconds;     // its timeout
  void (*work)(PartRun& run);
  bool hidden = false;  // run by another part only
};

/// In the order in which they run: the cheapest and most telling first.
std::span<const Part> all_parts();

using PartWork = void(PartRun& run);
PartWork check_device, check_operators, check_steps, check_synthetic_bf16, check_profile,
    check_upload, check_precisions, check_determinism, check_graph, check_nccl, check_nccl_sync,
    check_fp16, check_flow, check_resume, check_torchvision, check_recipe;

}  // namespace millrace::cli
