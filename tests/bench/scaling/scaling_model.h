// What a training step takes on many GPUs, predicted from parts that can be measured on one:
// docs/scaling.md. Seconds and bytes throughout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::scaling {

/// A gradient, or a bucket of several.
struct Gradient {
  double bytes = 0;
  double ready = 1;  // share of the backward pass after which it is there, 0 .. 1
};

/// What a GPU does alone.
struct Compute {
  double fixed_s = 0;  // per step, whatever its batch
  double image_s = 0;  // an image, forwards and backwards
  double spread = 0;   // standard deviation of image_s from image to image, as a share of it
  double backward = 2.0 / 3.0;  // share of the backward pass
};

struct Link {
  double bytes_per_s = 0;  // a large all-reduce's: what nccl-tests calls bus bandwidth
  double latency_s = 0;    // per hop
};

struct Network {
  int gpus_per_node = 8;
  Link within, between;  // nodes; between: what all GPUs of a node have together
};

/// Where the time of a step goes.
struct StepTime {
  double compute_s = 0;     // the average rank's
  double stragglers_s = 0;  // until the slowest rank has done the same
  double exposed_s = 0;     // until the last gradient is summed after that
  double total_s() const { return compute_s + stragglers_s + exposed_s; }
};

/// Expected largest of n independent standard normal numbers, n >= 1.
double expected_maximum(int n);

/// The better of a ring and a tree, each as NCCL's own tuning model has it: 2 (N-1) / N S / BW and
/// 2 (N-1) hops, or 2 S / BW and twice the depth of hops.
double all_reduce_s(double bytes, int gpus, const Network& network);

/// Joins gradients, in the order in which they get ready, until a bucket holds `bytes`; it is ready
/// with its last one.
std::vector<Gradient> in_buckets(std::vector<Gradient> gradients, double bytes);

/// `images` a GPU. The buckets are summed one after the other, each from when the slowest rank has
/// it.
StepTime step_time(const Compute& compute, double images, std::span<const Gradient> buckets,
                   int gpus, const Network& network);

/// Share of the GPUs' time that one alone would have needed too.
double efficiency(const Compute& compute, double images, std::span<const Gradient> buckets,
                  int gpus, const Network& network);

/// A whole training.
struct Training {
  double images = 0;  // an epoch
  double epochs = 0;
  double images_per_step = 0;
  double step_s = 0;
  double other_s = 0;  // start, evaluations that training waits for, the end
};
double training_s(const Training& training);

/// A machine that serves batches.
struct DataServer {
  double cores = 0;
  double images_per_core_s = 0;  // trainer bench dataflow
  double link_bytes_per_s = 0;
  double image_bytes = 0;  // as padded pixels
};

/// Servers that give `images_per_s` between them.
int data_servers(double images_per_s, const DataServer& server);

}  // namespace millrace::scaling
