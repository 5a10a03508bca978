// Predicts the time of a training step on many GPUs from times that can be measured on one GPU:
// docs/scaling.md. All times are in seconds, all sizes in bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace millrace::scaling {

/// A gradient, or a bucket of several gradients.
struct Gradient {
  double bytes = 0;
  double ready = 1;  // fraction of the backward pass after which it is ready, 0 to 1
};

/// The compute time of one GPU.
struct Compute {
  double fixed_s = 0;           // per step, for any batch size
  double image_s = 0;           // per image, forward and backward
  double spread = 0;            // standard deviation of image_s over images, relative to image_s
  double backward = 2.0 / 3.0;  // fraction of the backward pass
};

struct Link {
  double bytes_per_s = 0;  // of a large all-reduce; the bus bandwidth of nccl-tests
  double latency_s = 0;    // per hop
};

struct Network {
  int gpus_per_node = 8;
  Link within, between;  // within and between nodes; `between` is shared by all GPUs of a node
};

/// Time of a step by part.
struct StepTime {
  double compute_s = 0;     // of the average rank
  double stragglers_s = 0;  // until the slowest rank has done the same
  double exposed_s = 0;     // until the last gradient is summed after that
  double total_s() const { return compute_s + stragglers_s + exposed_s; }
};

/// Returns the expected maximum of n independent standard normal numbers, n >= 1.
double expected_maximum(int n);

/// Returns the time of a ring or a tree, whichever is faster, as in NCCL's tuning model. With N
/// GPUs, S bytes and bandwidth BW, a ring takes 2 (N-1) / N x S / BW and 2 (N-1) hops; a tree takes
/// 2 S / BW and twice as many hops as its depth.
double all_reduce_s(double bytes, int gpus, const Network& network);

/// Joins gradients, in the order in which they become ready, until a bucket has at least `bytes`. A
/// bucket is ready when its last gradient is ready.
std::vector<Gradient> in_buckets(std::vector<Gradient> gradients, double bytes);

/// Predicts a step with `images` images per GPU. The buckets are all-reduced one after another,
/// each as soon as it is ready on the slowest rank.
StepTime step_time(const Compute& compute, double images, std::span<const Gradient> buckets,
                   int gpus, const Network& network);

/// Returns the time of a step on one GPU divided by its time on `gpus` GPUs.
double efficiency(const Compute& compute, double images, std::span<const Gradient> buckets,
                  int gpus, const Network& network);

/// A whole training run.
struct Training {
  double images = 0;  // per epoch
  double epochs = 0;
  double images_per_step = 0;
  double step_s = 0;
  double other_s = 0;  // start, evaluations that block the training, end
};
double training_s(const Training& training);

/// A machine that serves batches.
struct DataServer {
  double cores = 0;
  double images_per_core_s = 0;  // from trainer bench dataflow
  double link_bytes_per_s = 0;
  double image_bytes = 0;  // padded pixels
};

/// Returns the number of servers needed for `images_per_s` in total.
int data_servers(double images_per_s, const DataServer& server);

}  // namespace millrace::scaling
