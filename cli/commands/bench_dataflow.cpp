// trainer bench dataflow: measures the throughput of the training flow, the time of each stage, and
// the distance to decoding, resizing and copying alone.
#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "millrace/base/clock.h"
#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/text.h"
#include "millrace/cli/bench/flow_lower_bounds.h"
#include "millrace/cli/command.h"
#include "millrace/cli/flow_recipe.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/sources/train_data.h"

namespace millrace::cli {
namespace {

constexpr double kBoundSeconds = 1.0;       // per measured lower bound
constexpr std::int64_t kBoundImages = 128;  // maximum number of images to measure them on

struct BenchDataflowArguments {
  ReadFlow* read = nullptr;
  ConfigFileArguments config;
  std::int64_t batches = 0, from = 0, threads = 0;
  double seconds = 0;
  bool digest = false, json = false;

  std::int64_t last() const { return batches > 0 ? batches : 200; }
};

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

struct FlowMeasurement {
  std::int64_t batches = 0, images = 0;
  std::int64_t bytes = 0, image_bytes = 0;  // bytes of pixels, with and without padding
  double wall_s = 0, cpu_s = 0;             // cpu_s: all threads of the process
  double first_batch_s = 0;                 // since the command began, including opening the data
  double busy_s = 0;                        // sum over all stages
  std::int64_t peak_rss_bytes = 0;          // of the process until the last batch
  std::vector<double> mean_waiting;         // queued items per stage of `flow`, mean over batches
  std::map<std::int64_t, ImageInfo> delivered;  // by image id; the latest delivery
  std::vector<std::string> digests;
  FlowReport flow;

  /// Returns the fraction of batch pixels that is padding.
  double padding_share() const {
    return bytes == 0 ? 0 : 1 - static_cast<double>(image_bytes) / static_cast<double>(bytes);
  }
  /// Returns the stage with the most busy time; nullptr without stages.
  const StageReport* bottleneck() const {
    const auto found = std::ranges::max_element(flow.stages, {}, &StageReport::busy_s);
    return found == flow.stages.end() ? nullptr : &*found;
  }
  /// Returns one sentence on whether the flow or the consumer waits, and what would make a flow
  /// with this number of threads faster.
  std::string verdict(int threads) const {
    constexpr double kHardlyEver = 0.1;
    if (batches == 0) return "the flow yielded no batch";
    if (flow.wait_s < kHardlyEver * wall_s)
      return "the flow waits for the consumer, so it is fast enough";
    const double waits = std::min(100.0, 100 * flow.wait_s / wall_s);
    const auto* stage = bottleneck();
    if (!stage || busy_s <= 0)
      return fmt::format(
          "the consumer waits {:.0f} % of the time for the data servers (data.source); measure "
          "them with `trainer bench dataflow` on their machines",
          waits);
    return fmt::format(
        "the consumer waits {:.0f} % of the time; {} takes {:.0f} % of the busy time: {}", waits,
        stage->name, 100 * stage->busy_s / busy_s,
        threads < oneapi::tbb::info::default_concurrency()
            ? "add threads"
            : "every core has a thread; use more cores or reduce the work");
  }
};

/// Takes batches from a flow for `seconds`, or `batches` of them if `seconds` is 0. `start`: when
/// the command began.
FlowMeasurement drain(DataFlow<Batch>& flow, std::int64_t batches, double seconds, bool digests,
                      Clock::time_point start) {
  FlowMeasurement result;
  const auto began = Clock::now();
  const double cpu_before = cpu_seconds();
  while (seconds > 0 ? seconds_since(began) < seconds : result.batches < batches) {
    const auto delivery = flow.next();
    if (!delivery) break;
    const auto& batch = delivery->value;
    if (result.batches++ == 0) result.first_batch_s = seconds_since(start);
    result.images += static_cast<std::int64_t>(batch.size());
    result.bytes += static_cast<std::int64_t>(batch.bytes());
    for (const auto& image : batch.images) {
      result.image_bytes += std::int64_t{3} * image.width * image.height;
      result.delivered[image.image_id] = image;
    }
    if (digests) result.digests.push_back(hex(digest(batch)));
    result.flow = flow.report();
    result.mean_waiting.resize(result.flow.stages.size());
    for (std::size_t k = 0; k < result.flow.stages.size(); ++k)
      result.mean_waiting[k] += static_cast<double>(result.flow.stages[k].waiting);
  }
  for (auto& waiting : result.mean_waiting) waiting /= static_cast<double>(result.batches);
  result.wall_s = seconds_since(began);
  result.cpu_s = cpu_seconds() - cpu_before;
  result.peak_rss_bytes = peak_rss_bytes();
  result.flow = flow.report();
  result.mean_waiting.resize(result.flow.stages.size());
  for (const auto& stage : result.flow.stages) result.busy_s += stage.busy_s;
  return result;
}

/// Measures decoding, resizing and copying alone on images that the flow delivered.
FlowLowerBounds lower_bounds_of(const FlowMeasurement& measured, const Source<Sample>& source,
                                int threads) {
  const auto step = std::max<std::int64_t>(1, source.size() / kBoundImages);
  std::vector<DeliveredImage> images;
  for (std::int64_t i = 0; i < source.size(); i += step) {
    const auto sample = source[i];
    const auto found = measured.delivered.find(sample.image_id);
    if (found != measured.delivered.end() && std::filesystem::exists(sample.path))
      images.push_back({sample.path, {found->second.width, found->second.height}});
  }
  return measure_lower_bounds(images, threads, kBoundSeconds);
}

double ms_per_item(const StageReport& stage) {
  return 1e3 * share(stage.busy_s, static_cast<double>(stage.items));
}

Json to_json(const FlowMeasurement& m, const FlowLowerBounds& bounds, int threads) {
  const auto images = static_cast<double>(m.images);
  Json stages = Json::array();
  for (std::size_t k = 0; k < m.flow.stages.size(); ++k) {
    const auto& stage = m.flow.stages[k];
    stages.push_back({{"name", stage.name},
                      {"items", stage.items},
                      {"busy_s", stage.busy_s},
                      {"busy_share", share(stage.busy_s, m.busy_s)},
                      {"ms_per_item", ms_per_item(stage)},
                      {"waiting", stage.waiting},
                      {"mean_waiting", m.mean_waiting[k]}});
  }
  return {{"images_per_s", share(images, m.wall_s)},
          {"images_per_cpu_s", share(images, m.cpu_s)},
          {"decode_floor_images_per_s", bounds.decode_images_per_s},
          {"decode_floor_images_per_cpu_s", bounds.decode_images_per_cpu_s},
          {"floors",
           {{"decode_ms", bounds.decode_ms},
            {"resize_ms", bounds.resize_ms},
            {"copy_ms", bounds.copy_ms},
            {"sum_ms", bounds.sum_ms()}}},
          {"share_of_floors", share(bounds.sum_ms() * images, 1e3 * m.cpu_s)},
          {"mb_per_s", 1e-6 * share(static_cast<double>(m.bytes), m.wall_s)},
          {"padding_share", m.padding_share()},
          {"pixels_per_image", share(static_cast<double>(m.image_bytes) / 3, images)},
          {"batches", m.batches},
          {"images", m.images},
          {"skipped", m.flow.skipped},
          {"wall_s", m.wall_s},
          {"cpu_s", m.cpu_s},
          {"first_batch_s", m.first_batch_s},
          {"consumer_wait_s", m.flow.wait_s},
          {"threads", threads},
          {"stages", std::move(stages)},
          {"bottleneck", m.bottleneck() ? m.bottleneck()->name : ""},
          {"verdict", m.verdict(threads)},
          {"peak_rss_bytes", m.peak_rss_bytes}};
}

void print_measurement(const FlowMeasurement& m, const FlowLowerBounds& bounds, int threads) {
  const auto images = static_cast<double>(m.images);
  const double rate = share(images, m.wall_s), cpu_ms = 1e3 * share(m.cpu_s, images);
  print_formatted("{} batches in {} ({}) with {}\n", m.batches, duration_text(m.wall_s),
                  counted(m.images, "image"), counted(threads, "thread"));
  print_formatted(
      "  {:8.1f} images/s   {:.1f} per s of CPU time, {:.0f} MB/s of batches, {:.0f} % padding\n",
      rate, share(images, m.cpu_s), 1e-6 * share(static_cast<double>(m.bytes), m.wall_s),
      100 * m.padding_share());
  if (bounds.decode_images_per_s > 0) {  // the source has JPEG files
    print_formatted("  {:8.1f} images/s   JPEG decoding alone; the flow reaches {:.0f} % of it\n",
                    bounds.decode_images_per_s, 100 * share(rate, bounds.decode_images_per_s));
    print_formatted(
        "  {:8.2f} ms         of CPU time per image; decode {:.2f} + resize {:.2f} + copy {:.2f}, "
        "measured alone, are {:.0f} % of it\n",
        cpu_ms, bounds.decode_ms, bounds.resize_ms, bounds.copy_ms,
        100 * share(bounds.sum_ms(), cpu_ms));
  }
  print_formatted("  first batch after {:.0f} ms, peak memory {}, {} skipped\n",
                  1e3 * m.first_batch_s, byte_text(m.peak_rss_bytes), m.flow.skipped);
  print_lines(fmt::format("  {}\n\n", m.verdict(threads)));
  print_formatted("  {:<24} {:>9} {:>9} {:>9} {:>7}\n", "stage", "items", "ms each", "busy",
                  "queue");
  for (std::size_t k = 0; k < m.flow.stages.size(); ++k) {
    const auto& stage = m.flow.stages[k];
    print_formatted("  {:<24} {:>9} {:>9.3f} {:>7.1f} % {:>7.1f}\n", stage.name, stage.items,
                    ms_per_item(stage), 100 * share(stage.busy_s, m.busy_s), m.mean_waiting[k]);
  }
  for (std::size_t i = 0; i < m.digests.size(); ++i)
    print_formatted("{}{}", i == 0 ? "\n  " : " ", m.digests[i]);
  if (!m.digests.empty()) print_formatted("\n");
}

int bench_dataflow(const BenchDataflowArguments& arguments) {
  prepare_opencv();
  const auto began = Clock::now();
  if (arguments.seconds == 0 && arguments.from >= arguments.last())
    throw ConfigError("--from: must be less than --batches");
  auto recipe = arguments.read(arguments.config);
  if (arguments.threads > 0) recipe.data.threads = arguments.threads;
  const int used = recipe.data.threads > 0 ? static_cast<int>(recipe.data.threads)
                                           : oneapi::tbb::info::default_concurrency();
  // One more, because the thread that takes batches counts too.
  using oneapi::tbb::global_control;
  const global_control threads(global_control::max_allowed_parallelism,
                               static_cast<std::size_t>(used) + 1);
  const auto train = open_train_data(recipe.data, recipe.sources);
  const auto start = [&](const Cursor& cursor) {
    return start_train_flow(recipe.data, recipe.stages, train, recipe.seed, {}, cursor);
  };
  Cursor cursor;
  if (arguments.from > 0) {
    const auto flow = start({});
    for (std::int64_t i = 0; i < arguments.from; ++i)
      if (const auto delivery = flow->next()) cursor = delivery->cursor;
  }
  const auto result = drain(*start(cursor), arguments.last() - arguments.from, arguments.seconds,
                            arguments.digest, began);

  const auto bounds =
      train.source ? lower_bounds_of(result, *train.source, used) : FlowLowerBounds{};
  if (!arguments.json) {
    print_measurement(result, bounds, used);
    suggest_next("trainer bench model {}; the slower of the two limits training",
                 arguments.config.file);
    return kDone;
  }
  auto json = to_json(result, bounds, used);
  if (arguments.digest) json["digests"] = result.digests;
  print(json);
  return kDone;
}

}  // namespace

void add_bench_dataflow(CLI::App& bench, Action& action, ReadFlow* read) {
  auto [command, arguments] = add_subcommand(bench, action, "dataflow",
                                             "Throughput of the training data flow, time per "
                                             "stage, and decode, resize and copy measured alone",
                                             bench_dataflow);
  arguments.read = read;
  arguments.config.add_to(command);
  auto* batches =
      command
          .add_option("--batches", arguments.batches, "number of batches to measure (default 200)")
          ->check(positive());
  command
      .add_option("--seconds", arguments.seconds, "measuring time in seconds, instead of --batches")
      ->check(positive())
      ->excludes(batches);
  command.add_option("--threads", arguments.threads, "threads of the flow; 0 = data.threads")
      ->check(not_negative());
  command
      .add_option("--from", arguments.from,
                  "number of batches to skip, by restarting from a cursor")
      ->check(not_negative());
  command.add_flag("--digest", arguments.digest,
                   "also print a digest of each batch; equal digests mean equal bytes");
  add_json_flag(command, arguments.json);
  add_examples(
      command,
      {"trainer bench dataflow configs/maskrcnn.toml --seconds 10",
       "trainer bench dataflow configs/maskrcnn.toml --batches 20 --from 12 --digest --json"});
}

}  // namespace millrace::cli
