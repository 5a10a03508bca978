// Predicts the speed of training on 1 to 512 GPUs from measured times: docs/scaling.md.
//
//   bench_scaling                     compares the model with published results and prints a table
//                                     for a machine
//   bench_scaling --image-ms 30 ...   prints the same table for other values
//   bench_scaling --gradients CONFIG  prints what can be measured without a GPU: the bytes of a
//                                     model's gradients, and when they are ready in the backward
//                                     pass of a step on this machine
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>

#include "millrace/base/clock.h"
#include "millrace/base/config.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/cli/replay/gradient_hooks.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/run/session.h"
#include "tests/bench/scaling/published.h"

namespace millrace::scaling {
namespace {

struct Parts {
  double image_ms = 0, fixed_ms = 0, spread = 0, images = 2;
  double between_gbs = 50, within_gbs = 300, between_us = 14, within_us = 4;
  int gpus_per_node = 8;
  double bucket_mb = 25, gradient_bytes = 4;  // per value
  double server_gbs = 3.1;                    // 25 Gbit/s
  DataServer server{.cores = 16, .images_per_core_s = 400, .image_bytes = 800.0 * 1216 * 3};

  DataServer data_server() const {
    auto result = server;
    result.link_bytes_per_s = server_gbs * 1e9;
    return result;
  }
  Compute compute() const {
    return {.fixed_s = fixed_ms / 1e3, .image_s = image_ms / 1e3, .spread = spread};
  }
  Network network() const {
    return {gpus_per_node,
            {within_gbs * 1e9, within_us * 1e-6},
            {between_gbs * 1e9, between_us * 1e-6}};
  }
  std::vector<Gradient> buckets() const {
    auto gradients = mask_rcnn_gradients();
    for (auto& gradient : gradients) gradient.bytes *= gradient_bytes / 4;
    return in_buckets(std::move(gradients), bucket_mb * 1e6);
  }
};

void print(const char* title, const std::vector<Comparison>& comparisons) {
  fmt::print("\n{:<46}{:>12}{:>12}\n", title, "published", "predicted");
  for (const auto& c : comparisons) {
    const bool minutes = c.published > 60;
    const double unit = minutes ? 1.0 / 60 : 1e3;
    fmt::print("  {:<44}{:>12.2f}{:>12.2f} {:<4}", c.what, c.published * unit, c.predicted * unit,
               minutes ? "min" : "ms");
    if (c.fitted)
      fmt::print("  fitted\n");
    else
      fmt::print("{:>+7.1f} %\n", 100 * c.error());
  }
}

void print(const Parts& parts) {
  const auto buckets = parts.buckets();
  fmt::print("\n{} images per GPU, {:.2f} ms each, {} buckets of gradients\n", parts.images,
             parts.image_ms, buckets.size());
  fmt::print("{:>6}{:>10}{:>10}{:>12}{:>10}{:>12}{:>12}{:>10}{:>9}\n", "GPUs", "step ms", "compute",
             "stragglers", "sync", "efficiency", "images/s", "cores", "servers");
  for (int gpus = 1; gpus <= 512; gpus *= 2) {
    const auto step = step_time(parts.compute(), parts.images, buckets, gpus, parts.network());
    const double images_per_s = gpus * parts.images / step.total_s();
    fmt::print("{:>6}{:>10.1f}{:>10.1f}{:>12.1f}{:>10.1f}{:>10.0f} %{:>12.0f}{:>10.1f}{:>9}\n",
               gpus, step.total_s() * 1e3, step.compute_s * 1e3, step.stragglers_s * 1e3,
               step.exposed_s * 1e3,
               100 * efficiency(parts.compute(), parts.images, buckets, gpus, parts.network()),
               images_per_s, images_per_s / parts.server.images_per_core_s,
               data_servers(images_per_s, parts.data_server()));
  }
}

/// Prints the gradients of one step. Gradients whose names are equal up to the third dot share a
/// row, so that the table stays readable.
void print_gradients(const std::string& file, const std::vector<std::string>& settings) {
  const Session session(resolve(load_config(file, settings)));
  const auto& recipe = session.recipe();
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto detector = session.make_detector(data.classes);
  const auto flow = session.plan(*detector, data).start_data({});
  const auto batch = flow->next();
  if (!batch) throw Error("no batch in the data");

  struct Seen {
    std::string part;
    double bytes, at_s;
  };
  std::vector<Seen> seen;
  Clock::time_point begun;
  const cli::GradientHooks hooks(
      detector->parameters(), [&](const std::string& name, const at::Tensor& gradient) {
        auto dots = name.find('.');
        for (int i = 0; i < 2 && dots != std::string::npos; ++i) dots = name.find('.', dots + 1);
        seen.push_back(
            {name.substr(0, dots), static_cast<double>(gradient.nbytes()), seconds_since(begun)});
      });
  double forward_s = 0, backward_s = 0;
  for (int step = 0; step < 3; ++step) {  // only the last one counts
    seen.clear();
    begun = Clock::now();
    at::Tensor loss;
    for (const auto& [name, value] : detector->losses(batch->value, {.seed = 1}))
      loss = loss.defined() ? loss + value : value;
    forward_s = seconds_since(begun);
    begun = Clock::now();
    loss.backward();
    backward_s = seconds_since(begun);
  }
  std::vector<Seen> parts;
  for (const auto& gradient : seen) {
    const auto part = std::ranges::find(parts, gradient.part, &Seen::part);
    if (part == parts.end()) {
      parts.push_back(gradient);
    } else {
      part->bytes += gradient.bytes;
      part->at_s = gradient.at_s;
    }
  }
  std::ranges::stable_sort(parts, {}, &Seen::at_s);
  double bytes = 0;
  fmt::print("forward {:.2f} s, backward {:.2f} s\n{:<40}{:>10}{:>10}\n", forward_s, backward_s,
             "gradients of", "MB", "ready");
  for (const auto& part : parts) {
    fmt::print("{:<40}{:>10.2f}{:>10.3f}\n", part.part, part.bytes / 1e6, part.at_s / backward_s);
    bytes += part.bytes;
  }
  fmt::print("{:<40}{:>10.2f}\n", "all", bytes / 1e6);
}

int run(int argc, char** argv) {
  CLI::App app{"Predicts the speed of training on 1 to 512 GPUs from measured parts."};
  Parts parts{.image_ms = mlperf_h100().image_s * 1e3, .spread = fitted_spread()};
  std::string config;
  std::vector<std::string> settings;
  const auto add = [&](const char* name, auto& value, const char* doc) {
    app.add_option(name, value, doc)->capture_default_str()->check(CLI::NonNegativeNumber);
  };
  add("--image-ms", parts.image_ms, "time of an image, forward and backward, in ms");
  add("--fixed-ms", parts.fixed_ms, "time of a step that does not depend on the batch size, in ms");
  add("--spread", parts.spread, "standard deviation of an image's time, as a fraction of it");
  add("--images", parts.images, "images per GPU and step");
  add("--gpus-per-node", parts.gpus_per_node, "number of GPUs per node");
  add("--within-gbs", parts.within_gbs, "bus bandwidth within a node, GB/s");
  add("--within-us", parts.within_us, "latency of a hop within a node, in microseconds");
  add("--between-gbs", parts.between_gbs, "bandwidth of a node's network, GB/s");
  add("--between-us", parts.between_us, "latency of a hop between nodes, in microseconds");
  add("--bucket-mb", parts.bucket_mb, "size of a gradient bucket, MB");
  add("--gradient-bytes", parts.gradient_bytes,
      "bytes per gradient value: 4 = fp32, 2 = fp16 or bf16");
  add("--server-cores", parts.server.cores, "number of cores of a data server");
  add("--images-per-core", parts.server.images_per_core_s,
      "images per second and core (trainer bench dataflow)");
  add("--server-gbs", parts.server_gbs, "bandwidth of a data server's network, GB/s");
  app.add_option("--gradients", config, "configuration whose model's gradients are measured")
      ->type_name("CONFIG");
  app.add_option("--set", settings, "setting of the configuration")->type_name("KEY=VALUE");
  CLI11_PARSE(app, argc, argv);
  start_logging();
  if (!config.empty()) {
    print_gradients(config, settings);
    return 0;
  }
  print("a step", published_steps());
  print("a step on the first node", published_first_nodes());
  print("a training", published_trainings());
  print(parts);
  return 0;
}

}  // namespace
}  // namespace millrace::scaling

int main(int argc, char** argv) try {
  return millrace::scaling::run(argc, argv);
} catch (const std::exception& problem) {
  fmt::print(stderr, "bench_scaling: {}\n", problem.what());
  return 1;
}
