#include "tests/bench/scaling/published.h"

#include <fmt/format.h>

namespace millrace::scaling {
namespace {

constexpr double kTrainImages = 117266;  // images of COCO train2017 with objects

/// A measured step time for one number of GPUs.
struct Point {
  int gpus = 0;
  double images = 0;  // per GPU
  double step_s = 0;
};

/// A code base and the machines it trains on.
struct System {
  std::string name;
  Network network;
  std::vector<Gradient> buckets;
};

/// Returns all gradients in fp16 as one bucket that is all-reduced after the backward pass, as in
/// MLPerf.
std::vector<Gradient> one_bucket() {
  double bytes = 0;
  for (const auto& gradient : mask_rcnn_gradients()) bytes += gradient.bytes / 2;
  return {{bytes, 1}};
}

System h100() { return {"MLPerf, DGX H100", dgx_h100(), one_bucket()}; }
// 64 MB is Horovod's fusion buffer.
System v100() { return {"aws TF 1.15, p3dn", p3dn(), in_buckets(mask_rcnn_gradients(), 64e6)}; }

const Point kH100Node{8, 12, 96 / 1435.0}, kH100Nodes{64, 4, 256 / 8250.0};

double predicted_step_s(const System& system, double image_s, double spread, const Point& at) {
  return step_time({.image_s = image_s, .spread = spread}, at.images, system.buckets, at.gpus,
                   system.network)
      .total_s();
}

/// Returns the x in [low, high] at which the increasing function f is y.
template <class F>
double solve(F f, double y, double low, double high) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < y ? low : high) = middle;
  }
  return (low + high) / 2;
}

double fitted_image_s(const System& system, double spread, const Point& at) {
  return solve([&](double s) { return predicted_step_s(system, s, spread, at); }, at.step_s, 0, 10);
}

/// Fits the time per image to the first point and predicts the other points.
void add(const System& system, const std::vector<Point>& points, std::vector<Comparison>& all) {
  const double spread = fitted_spread();
  const double image_s = fitted_image_s(system, spread, points[0]);
  for (const auto& at : points)
    all.push_back({fmt::format("{}, {} x {:.0f}", system.name, at.gpus, at.images), at.step_s,
                   predicted_step_s(system, image_s, spread, at), &at == &points[0]});
}

/// Returns the step time, from the hours that 12 and 24 epochs took. The time outside the epochs
/// cancels out.
double aws_step_s(int gpus, double hours_of_12, double hours_of_24) {
  return (hours_of_24 - hours_of_12) * 3600 / 12 / (kTrainImages / (4 * gpus));
}

}  // namespace

Network dgx_h100() { return {8, {370e9, 4e-6}, {370e9, 14e-6}}; }
Network dgx_a100() { return {8, {230e9, 4e-6}, {190e9, 14e-6}}; }
Network p3dn() { return {8, {130e9, 4e-6}, {12.5e9, 28e-6}}; }

double fitted_spread() {
  // A larger spread leaves less time for the image itself, so the step with fewer images per GPU
  // gets longer.
  return solve(
      [](double spread) {
        return predicted_step_s(h100(), fitted_image_s(h100(), spread, kH100Node), spread,
                                kH100Nodes);
      },
      kH100Nodes.step_s, 0, 3);
}

Compute mlperf_h100() {
  return {.image_s = fitted_image_s(h100(), fitted_spread(), kH100Node), .spread = fitted_spread()};
}

std::vector<Comparison> published_steps() {
  std::vector<Comparison> all;
  add(h100(), {kH100Node, kH100Nodes, {256, 1, 256 / 23835.0}}, all);
  all[1].fitted = true;  // used to fit the spread
  add({"MLPerf, DGX A100", dgx_a100(), one_bucket()},
      {{8, 12, 96 / 686.0}, {64, 2, 128 / 3338.0}, {256, 1, 256 / 13190.0}}, all);
  add(v100(),
      {{8, 4, aws_step_s(8, 5.09, 9.78)},
       {16, 4, aws_step_s(16, 3.11, 5.60)},
       {32, 4, aws_step_s(32, 1.94, 3.33)}},
      all);
  return all;
}

std::vector<Comparison> published_first_nodes() {
  struct Node {
    const char* name;
    Network network;
    double images, of_one, of_eight;  // images per second
  };
  std::vector<Comparison> all;
  for (const auto& node :
       std::initializer_list<Node>{{"DLE TF2, A100, TF32", dgx_a100(), 4, 18.41, 103.80},
                                   {"DLE TF2, V100, FP32", p3dn(), 4, 8.51, 50.56},
                                   {"DLE TF2, A100, AMP", dgx_a100(), 4, 28.58, 114.45},
                                   {"DLE TF2, V100, AMP", p3dn(), 4, 19.35, 58.33},
                                   {"DLE PyTorch, A100, TF32", dgx_a100(), 12, 23, 193},
                                   {"DLE PyTorch, A100, fp16", dgx_a100(), 12, 24, 209},
                                   {"DLE PyTorch, V100, FP32", p3dn(), 12, 12, 85},
                                   {"DLE PyTorch, V100, fp16", p3dn(), 12, 16, 135}}) {
    const System system{node.name, node.network, in_buckets(mask_rcnn_gradients(), 25e6)};
    const Point at{8, node.images, 8 * node.images / node.of_eight};
    all.push_back({fmt::format("{}, 1 to 8 x {:.0f}", node.name, node.images), at.step_s,
                   predicted_step_s(system, 1 / node.of_one, fitted_spread(), at)});
  }
  return all;
}

std::vector<Comparison> published_trainings() {
  struct Run {
    const char* name;
    double images_per_step, images_per_s, epochs, evaluation_s, minutes;
  };
  std::vector<Comparison> all;
  // Only the last evaluation extends a run; the other evaluations run in parallel.
  for (const auto& run :
       std::initializer_list<Run>{{"MLPerf v1.1, 8 A100", 96, 597, 14, 18.0, 46.2},
                                  {"MLPerf v2.1, 8 A100", 96, 686, 14, 15.5, 40.1},
                                  {"MLPerf v2.0, 64 A100", 128, 3338, 14, 15.5, 8.44},
                                  {"MLPerf v2.1, 384 A100 (256 train)", 256, 13190, 17, 4.8, 2.75},
                                  {"MLPerf v3.0, 8 H100", 96, 1435, 14, 10.6, 19.2},
                                  {"MLPerf v3.0, 64 H100", 256, 8250, 17, 4.9, 4.26},
                                  {"MLPerf v3.0, 384 H100 (256 train)", 256, 23835, 17, 4.8, 1.46}})
    all.push_back({run.name, run.minutes * 60,
                   training_s({.images = kTrainImages,
                               .epochs = run.epochs,
                               .images_per_step = run.images_per_step,
                               .step_s = run.images_per_step / run.images_per_s,
                               .other_s = run.evaluation_s})});
  // Time for start, evaluations and checkpoints in AWS's runs: the value for 8 GPUs is used for any
  // number of GPUs.
  const Point node{8, 4, aws_step_s(8, 5.09, 9.78)};
  const double spread = fitted_spread(), image_s = fitted_image_s(v100(), spread, node);
  const double other_s = (2 * 5.09 - 9.78) * 3600;
  for (const auto& [gpus, hours_of_12, hours_of_24] :
       {std::tuple{8, 5.09, 9.78}, {16, 3.11, 5.60}, {32, 1.94, 3.33}})
    for (const auto& [epochs, hours] : {std::pair{12.0, hours_of_12}, {24.0, hours_of_24}}) {
      const Point at{gpus, 4, 0};
      all.push_back({fmt::format("aws TF 1.15, {} V100, {:.0f} epochs", gpus, epochs), hours * 3600,
                     training_s({.images = kTrainImages,
                                 .epochs = epochs,
                                 .images_per_step = 4.0 * gpus,
                                 .step_s = predicted_step_s(v100(), image_s, spread, at),
                                 .other_s = other_s}),
                     /*fitted=*/gpus == 8});
    }
  return all;
}

std::vector<Gradient> mask_rcnn_gradients() {
  return {
      {8.21e6, 0.011},   // mask predictor, mask head 3 to 1
      {2.36e6, 0.013},   // mask head 0
      {5.84e6, 0.023},   // box predictor, fc7
      {51.38e6, 0.031},  // fc6
      {2.37e6, 0.409},   // RPN
      {13.38e6, 0.708},  // FPN
      {59.77e6, 0.776},  // C5
      {28.31e6, 0.901},  // C4
      {4.85e6, 1.000},   // C3 (the stem and C2 are frozen)
  };
}

}  // namespace millrace::scaling
