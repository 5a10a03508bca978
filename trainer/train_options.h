// Options of the table [train].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/detector/device_kinds.h"
#include "millrace/models/detector/precision.h"

namespace millrace {

/// Reaction to repeated steps with a loss or gradient that is not finite.
enum class OnDivergence { end, go_back };
inline std::vector<std::string> value_names(OnDivergence) { return {"end", "return"}; }

/// Change that is made after a return to a checkpoint.
enum class OnReturn { lower_rate, skip_data };
inline std::vector<std::string> value_names(OnReturn) { return {"lower_rate", "skip_data"}; }

struct TrainOptions {
  double epochs = 12;
  std::int64_t max_steps = 0;  // maximum number of steps; 0 = unlimited
  std::int64_t seed = 1;
  std::string device = "cpu";
  FloatType precision = FloatType::fp32;
  // Precision of detection, during training and in commands.
  FloatType eval_precision = FloatType::fp32;
  double loss_scale = 0;  // factor of the losses for fp16; 0 = adapted during training
  bool deterministic = true;
  FloatType gradient_type = FloatType::fp32;  // type of gradients exchanged between ranks
  std::int64_t threads = 0;                   // number of compute threads; 0 = all cores
  std::int64_t micro_batch = 0;  // number of images computed alone; 0 = a rank's whole batch
  std::int64_t passes = 1;       // number of parts of a batch computed one after the other
  std::string output = "runs";
  Duration rank_timeout = {600};
  OnDivergence on_divergence = OnDivergence::end;
  OnReturn on_return = OnReturn::lower_rate;
  double price_per_hour = 0;

  /// Returns true if a training that diverges returns to a checkpoint.
  bool returns() const { return on_divergence == OnDivergence::go_back; }

  void describe(Options& o) {
    o.add("epochs", epochs, "length of the training", {.min = 0, .unit = "epochs"});
    o.add("max_steps", max_steps,
          "maximum number of steps, also before train.epochs; 0 = unlimited",
          {.min = 0, .unit = "steps"});
    o.add("seed", seed, "seed of initial weights, data order and every random draw",
          {.min = 0, .max = kAnySeed});
    o.add("device", device,
          "device: \"cpu\", or \"cuda\" with one GPU per process (operators of a plug-in)",
          device_kinds());
    o.add("precision", precision,
          "precision of convolutions and matrix products; fp16 uses loss scaling");
    o.add("eval_precision", eval_precision, "precision of inference; tf32 applies to both",
          {FloatType::fp32, FloatType::bf16, FloatType::fp16});
    o.add("loss_scale", loss_scale, "loss scale of fp16; 0 = dynamic", {.min = 0, .max = 16777216});
    o.add("gradient_type", gradient_type,
          "type of gradients sent between ranks; sums are always fp32",
          {FloatType::fp32, FloatType::bf16, FloatType::fp16});
    o.add("deterministic", deterministic, "give the same bytes in every run");
    o.add("threads", threads, "number of compute threads; 0 = all cores", {.min = 0, .max = 4096});
    o.add("micro_batch", micro_batch,
          "number of images computed together, with train.threads threads, so that 1, 2, 4 ... "
          "ranks give the same bytes; 0 = the whole batch of a rank",
          {.min = 0, .max = 4096, .unit = "images"});
    o.add("passes", passes,
          "number of parts of a batch, computed one after the other to use less memory",
          {.min = 1, .max = 4096});
    o.add("output", output, "folder in which run folders are created").affects(Affects::run);
    o.add("rank_timeout", rank_timeout,
          "timeout for other ranks and for data with several ranks; then all ranks stop",
          {.min = 1, .max = 1e6})
        .affects(Affects::run);
    o.add("price_per_hour", price_per_hour,
          "price of all machines together per hour, in any currency, for the cost in record.json "
          "and the log; 0 = unknown",
          {.min = 0, .max = 1e9})
        .affects(Affects::run);
    o.add("on_divergence", on_divergence,
          "action after ten steps in a row with losses or gradients that are not finite: end with "
          "an error, or return to the newest checkpoint before them");
    o.add("on_return", on_return,
          "change after a return: half the learning rate, or other data, from after the last of "
          "these steps");
  }

  /// Throws ConfigError for values that contradict each other.
  void check(const Config& table) const {
    require(table, "precision", precision != FloatType::tf32 || device == "cuda",
            "= \"tf32\" requires device = \"cuda\"");
    require(table, "loss_scale", loss_scale == 0 || precision == FloatType::fp16,
            "requires precision = \"fp16\"");
    if (micro_batch == 0) return;
    require(table, "micro_batch", threads > 0,
            "requires train.threads, the number of threads per micro-batch, which determines the "
            "bytes; set train.threads = 1, or more if a rank has more cores than micro-batches");
    require(table, "micro_batch", gradient_type == FloatType::fp32,
            "requires train.gradient_type = \"fp32\", since each rank would round its own sums");
  }
};

}  // namespace millrace
