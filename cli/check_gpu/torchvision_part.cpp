// The same step in torchvision, where python3 has it.
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/cli/check_gpu/part.h"

namespace millrace::cli {
namespace {

constexpr auto kImports =
    "import torch, torchvision; print(torch.__version__, torchvision.__version__)";

}  // namespace

void check_torchvision(PartRun& run) {
  try {
    const auto end =
        Program({"python3", "-c", kImports}, run.log("imports"), {.seconds = run.seconds_left()})
            .wait();
    if (!end.ok())
      return run.report.skip(fmt::format("python3 has no torch and torchvision: {}",
                                         last_words(run.log("imports").string() + ".err")));
  } catch (const Error& problem) {
    return run.report.skip(problem.what());
  }
  run.report.fact("torch, torchvision", last_words(run.log("imports")));
  const auto script = shipped("scripts/torchvision_step.py").string();
  for (const std::string mode : {"eager", "compiled"})
    for (const int batch : run.options.small ? std::vector<int>{1} : std::vector<int>{8, 12}) {
      const auto name = fmt::format("{}_{}", mode, batch);
      std::vector<std::string> words{"python3",  script,
                                     "--mode",   mode,
                                     "--batch",  std::to_string(batch),
                                     "--device", run.on_cuda() ? "cuda" : "cpu"};
      if (run.options.small)
        words.insert(words.end(), {"--short", "64", "--long", "96", "--steps", "1"});
      const auto end =
          Program(words, run.log(name), {.seconds = std::min(120.0, run.seconds_left())}).wait();
      const auto text = last_json(run.log(name));
      const auto what = fmt::format("{}, batch {}", mode, batch);
      if (!end.ok() || text.empty()) {
        run.report.note(fmt::format("{}: not measured: {}: {}", what, end.failure(),
                                    last_words(run.log(name).string() + ".err")));
        continue;
      }
      const auto result = Json::parse(text);
      run.report.row("torchvision's Mask R-CNN, bf16, data in memory",
                     {{"mode", mode},
                      {"batch", batch},
                      {"images/s", result.at("images_per_s")},
                      {"ms a step", 1e3 * result.at("step_s").get<double>()},
                      {"peak memory of tensors, GiB", result.at("peak_gib")}});
    }
}

}  // namespace millrace::cli
