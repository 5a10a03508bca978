#include "millrace/cli/bench/flow_measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "millrace/base/digest.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/cluster/processors.h"

namespace millrace::cli {
namespace {

constexpr double kHardlyEver = 0.1;  // share of the time

const StageReport* slowest(const FlowReport& flow) {
  const auto found = std::ranges::max_element(flow.stages, {}, &StageReport::busy_s);
  return found == flow.stages.end() ? nullptr : &*found;
}

}  // namespace

double FlowMeasurement::busy_s() const {
  return std::transform_reduce(flow.stages.begin(), flow.stages.end(), 0.0, std::plus<>(),
                               [](const StageReport& stage) { return stage.busy_s; });
}

double FlowMeasurement::padding_share() const {
  return bytes == 0 ? 0 : 1 - static_cast<double>(image_bytes) / static_cast<double>(bytes);
}

std::string FlowMeasurement::bottleneck() const {
  const auto* stage = slowest(flow);
  return stage ? stage->name : "";
}

std::string FlowMeasurement::verdict(int threads) const {
  const auto* stage = slowest(flow);
  if (batches == 0) return "no batch came";
  if (flow.wait_s < kHardlyEver * wall_s)
    return "the flow waits for the consumer: it is fast enough";
  if (!stage || busy_s() <= 0)
    return fmt::format(
        "the consumer waits {:.0f} % of the time for the data servers (data.source), which make "
        "the "
        "batches: measure them with `trainer bench dataflow` where they run",
        std::min(100.0, 100 * flow.wait_s / wall_s));
  const bool cores_left = threads < static_cast<int>(allowed_processor_count());
  return fmt::format(
      "the consumer waits {:.0f} % of the time; {} takes {:.0f} % of the busy time: {}",
      std::min(100.0, 100 * flow.wait_s / wall_s), stage->name, 100 * stage->busy_s / busy_s(),
      cores_left ? "add threads" : "all cores have a thread, so only more cores or less work help");
}

FlowMeasurement drain(DataFlow<Batch>& flow, const DrainOptions& options) {
  FlowMeasurement result;
  const auto began = std::chrono::steady_clock::now();
  const double cpu_before = cpu_seconds();
  const auto wall = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  while (options.seconds > 0 ? wall() < options.seconds : result.batches < options.batches) {
    const auto delivery = flow.next();
    if (!delivery) break;
    const auto& batch = delivery->value;
    ++result.batches;
    result.images += static_cast<std::int64_t>(batch.size());
    result.bytes += static_cast<std::int64_t>(batch.bytes());
    for (const auto& image : batch.images) {
      result.image_bytes += std::int64_t{3} * image.width * image.height;
      result.delivered[image.image_id] = image;
    }
    if (options.digest) result.digests.push_back(hex(digest(batch)));
    result.flow = flow.report();
    result.mean_waiting.resize(result.flow.stages.size());
    for (std::size_t k = 0; k < result.flow.stages.size(); ++k)
      result.mean_waiting[k] += static_cast<double>(result.flow.stages[k].waiting);
  }
  for (auto& waiting : result.mean_waiting) waiting /= static_cast<double>(result.batches);
  result.wall_s = wall();
  result.cpu_s = cpu_seconds() - cpu_before;
  result.peak_rss_bytes = peak_rss_bytes();
  result.flow = flow.report();
  return result;
}

}  // namespace millrace::cli
