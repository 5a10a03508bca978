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
    o.add("max_steps", max_steps, "stop there even before train.epochs; 0: no such limit",
          {.min = 0, .unit = "steps"});
    o.add("seed", seed, "of initial weights, order of data and every random draw",
          {.min = 0, .max = kAnySeed});
    o.add("device", device,
          "what computes: the processor, or a GPU a process (a plug-in's operators)",
          device_kinds());
    o.add("precision", precision, "of convolutions and matrix products; fp16 scales its losses");
    o.add("eval_precision", eval_precision, "the same of detecting in images; tf32 holds for both",
          {FloatType::fp32, FloatType::bf16, FloatType::fp16});
    o.add("loss_scale", loss_scale, "factor of the losses in fp16; 0: looked for while training",
          {.min = 0, .max = 16777216});
    o.add("gradient_type", gradient_type,
          "of gradients between ranks; their sums are fp32 all the same",
          {FloatType::fp32, FloatType::bf16, FloatType::fp16});
    o.add("deterministic", deterministic, "the same run gives the same bytes");
    o.add("threads", threads, "of the maths; 0: all cores", {.min = 0, .max = 4096});
    o.add(
        "micro_batch", micro_batch,
        "compute so many images alone, each with train.threads, so that 1, 2, 4 ... ranks give the "
        "same bytes; 0: a rank's batch at once",
        {.min = 0, .max = 4096, .unit = "images"});
    o.add("passes", passes,
          "compute a batch in so many parts, one after the other, each in a part of the memory",
          {.min = 1, .max = 4096});
    o.add("output", output, "folder that run folders are made in").decides(Decides::run);
    o.add("rank_timeout", rank_timeout,
          "of several ranks, how long the others, or data, are waited for before all are ended",
          {.min = 1, .max = 1e6})
        .decides(Decides::run);
    o.add("price_per_hour", price_per_hour,
          "of all machines of the training together, in any currency: record.json and the log then "
          "have what it has cost; 0: not known",
          {.min = 0, .max = 1e9})
        .decides(Decides::run);
    o.add(
        "on_divergence", on_divergence,
        "after ten steps in a row whose losses or gradients are not finite: end with an error, or "
        "return to the newest checkpoint before them");
    o.add(
        "on_return", on_return,
        "what is different after a return: half the learning rate, or other data, those after the "
        "last of these steps");
  }

  /// Throws ConfigError for values that contradict each other.
  void check(const Config& table) const {
    require(table, "precision", precision != FloatType::tf32 || device == "cuda",
            "= \"tf32\" is for device = \"cuda\" alone");
    require(table, "loss_scale", loss_scale == 0 || precision == FloatType::fp16,
            "is for precision = \"fp16\" alone");
    if (micro_batch == 0) return;
    require(
        table, "micro_batch", threads > 0,
        "needs train.threads, the number of threads that compute a micro-batch, since it decides "
        "the bytes: set train.threads = 1, or more if a rank has more cores than micro-batches");
    require(table, "micro_batch", gradient_type == FloatType::fp32,
            "needs train.gradient_type = \"fp32\": each rank would round its own sums");
  }
};

}  // namespace millrace
