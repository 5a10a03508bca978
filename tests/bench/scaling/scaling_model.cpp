#include "tests/bench/scaling/scaling_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::scaling {

double expected_maximum(int n) {
  // The integral of x n phi(x) Phi(x)^(n-1) by the trapezoidal rule, whose error vanishes with the
  // tails of the integrand.
  constexpr double kFrom = -9, kTo = 9;
  constexpr int kPieces = 400;
  const double width = (kTo - kFrom) / kPieces;
  double sum = 0;
  for (int i = 0; i <= kPieces; ++i) {
    const double x = kFrom + i * width;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    sum += x * n * density * std::pow(below, n - 1);
  }
  return n == 1 ? 0 : sum * width;
}

double all_reduce_s(double bytes, int gpus, const Network& network) {
  if (gpus <= 1 || bytes <= 0) return 0;
  const int nodes = (gpus + network.gpus_per_node - 1) / network.gpus_per_node;
  const int in_a_node = std::min(gpus, network.gpus_per_node);
  double rate = network.within.bytes_per_s;
  if (nodes > 1) rate = std::min(rate, network.between.bytes_per_s);
  const double ring = 2.0 * (gpus - 1) / gpus * bytes / rate +
                      2 * (gpus - nodes) * network.within.latency_s +
                      2 * (nodes - 1) * network.between.latency_s;
  const double tree = 2 * bytes / rate + 2 * (in_a_node - 1) * network.within.latency_s +
                      2 * std::log2(nodes) * network.between.latency_s;
  return std::min(ring, tree);
}

std::vector<Gradient> in_buckets(std::vector<Gradient> gradients, double bytes) {
  std::ranges::stable_sort(gradients, {}, &Gradient::ready);
  std::vector<Gradient> buckets;
  for (const auto& gradient : gradients) {
    if (buckets.empty() || buckets.back().bytes >= bytes) buckets.push_back({});
    buckets.back().bytes += gradient.bytes;
    buckets.back().ready = gradient.ready;
  }
  return buckets;
}

StepTime step_time(const Compute& compute, double images, std::span<const Gradient> buckets,
                   int gpus, const Network& network) {
  StepTime step;
  step.compute_s = compute.fixed_s + images * compute.image_s;
  // The spread of the sum over independent images, and the slowest such sum over all ranks.
  step.stragglers_s = compute.spread * compute.image_s * std::sqrt(images) * expected_maximum(gpus);
  const double slowest = step.compute_s + step.stragglers_s;
  const double backward = compute.backward * slowest, begins = slowest - backward;
  double free = 0;
  for (const auto& bucket : buckets)
    free = std::max(free, begins + bucket.ready * backward) +
           all_reduce_s(bucket.bytes, gpus, network);
  step.exposed_s = std::max(0.0, free - slowest);
  return step;
}

double efficiency(const Compute& compute, double images, std::span<const Gradient> buckets,
                  int gpus, const Network& network) {
  return step_time(compute, images, buckets, 1, network).total_s() /
         step_time(compute, images, buckets, gpus, network).total_s();
}

double training_s(const Training& training) {
  return training.epochs * training.images / training.images_per_step * training.step_s +
         training.other_s;
}

int data_servers(double images_per_s, const DataServer& server) {
  const double gives = std::min(server.cores * server.images_per_core_s,
                                server.link_bytes_per_s / server.image_bytes);
  return static_cast<int>(std::ceil(images_per_s / gives));
}

}  // namespace millrace::scaling
