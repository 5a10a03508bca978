// Sums of gradients between ranks, as far as one device shows them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/cli/check_gpu/device_time.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/models/detector/device_tools.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/gradient_sync.h"

namespace millrace::cli {
namespace {

at::Tensor values_on(at::Device device, bool small) {
  return at::full({small ? 1000 : 16 << 20}, 1.5, at::TensorOptions(device).dtype(at::kFloat));
}

void check_unchanged(PartRun& run, const std::string& what, const at::Tensor& values,
                     double seconds) {
  const auto wrong = values.ne(1.5).sum().item<std::int64_t>();
  run.report.check(what, wrong == 0, fmt::format("{} of {} values differ", wrong, values.numel()));
  run.report.row(
      "Sums over one rank",
      {{"by", what}, {"MB", static_cast<double>(values.nbytes()) / 1e6}, {"ms", 1e3 * seconds}});
}

}  // namespace

void check_nccl(PartRun& run) {
  const auto device = run.device();
  const auto& tools = device_tools().entries();
  if (const auto found = tools.find(run.options.device); found != tools.end()) {
    const auto values = values_on(device, run.options.small);
    const auto tool = found->second.create();
    std::string library;
    const auto seconds = device_seconds(device, [&] { library = tool->sum_alone(values); });
    run.report.fact("sums by", library);
    check_unchanged(run, "the library alone", values, seconds);
  } else {
    run.report.note("The plug-in registers no device_tools, which sum over one rank.");
  }
  if (!gradient_syncs().entries().contains(run.options.device))
    return run.report.note("The plug-in brings no sums of gradients for this device.");
  // The trainer's own class needs MPI, as a process that mpirun has started has it.
  const auto result = run.folder / "nccl_sync.json";
  std::vector<std::string> words{"mpirun",
                                 "--allow-run-as-root",
                                 "--oversubscribe",
                                 "-n",
                                 "1",
                                 trainer_program().string(),
                                 "check-gpu",
                                 "--part",
                                 "nccl_sync",
                                 "--result",
                                 result.string(),
                                 "--device",
                                 run.options.device,
                                 "--plugin",
                                 run.options.plugin,
                                 "--out",
                                 run.options.out.string()};
  if (run.options.small) words.emplace_back("--small");
  try {
    Program program(words, run.log("nccl_sync"), {.seconds = run.seconds_left()});
    const auto end = program.wait();
    run.report.check(
        "the trainer's sums of gradients, under mpirun", end.ok(),
        end.ok() ? "as they were"
                 : end.failure() + ": " + last_words(run.log("nccl_sync").string() + ".err"));
  } catch (const Error& problem) {
    run.report.note(
        fmt::format("The trainer's sums of gradients were left out: {}.", problem.what()));
  }
}

void check_nccl_sync(PartRun& run) {
  Cluster::run_with_world([&](const Cluster& cluster) {
    const auto device = run.device();
    const auto values = values_on(device, run.options.small);
    const auto sync = make_gradient_sync(device.type(), cluster);
    const auto seconds = device_seconds(device, [&] {
      sync->begin_sum(values, "values");
      sync->wait();
    });
    check_unchanged(run, "the trainer's sums", values, seconds);
    return run.report.ok() ? kDone : kFailed;
  });
}

}  // namespace millrace::cli
