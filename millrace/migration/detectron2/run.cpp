#include <fmt/format.h>

#include <string>

#include "millrace/migration/detectron2/parts.h"

namespace millrace::detectron2 {
namespace {

void put_every(Translation& t, const std::string& theirs, const std::string& callback) {
  const auto found = t.read(theirs);
  t.put(callback + ".every", words(fmt::format("{} steps", found.integer())), found);
}

}  // namespace

void read_run(Translation& t, const Value& recipe) {
  const auto is_set = [&](const char* path) { return recipe.at_path(path) != nullptr; };
  if (is_set("SOLVER.CHECKPOINT_PERIOD"))
    put_every(t, "SOLVER.CHECKPOINT_PERIOD", "callbacks.checkpoint");
  if (is_set("TEST.EVAL_PERIOD")) {
    if (t.look("TEST.EVAL_PERIOD").integer() > 0)
      put_every(t, "TEST.EVAL_PERIOD", "callbacks.evaluate");
    else
      t.leave_out(t.read("TEST.EVAL_PERIOD"),
                  "evaluated each epoch; callbacks.evaluate.every says how often");
  }
  if (const auto folder = t.read("OUTPUT_DIR"); is_set("OUTPUT_DIR"))
    t.put("train.output", words(folder.text()), folder);
  const auto seed = t.read("SEED");
  if (seed.integer() >= 0)
    t.put("train.seed", seed.real(), seed);
  else if (is_set("SEED"))
    t.leave_out(seed, "a run always has a seed: train.seed");
  if (is_set("MODEL.DEVICE")) {
    const auto device = t.read("MODEL.DEVICE");
    if (device.text() == "cpu")
      t.put("train.device", words("cpu"), device);
    else
      t.leave_out(device, "train.device = \"cuda\", which needs a plug-in (docs/gpu.md)");
  }
  t.expect("CUDNN_BENCHMARK", literal(false), "train.deterministic = false lets libtorch choose");
  t.expect("FLOAT32_PRECISION", literal(std::string()), "train.precision: fp32, tf32, bf16, fp16");
  t.expect("VIS_PERIOD", literal(std::int64_t{0}), "callbacks.pictures draws validation images");
  t.expect("TEST.EXPECTED_RESULTS", literal(Value::List{}),
           "callbacks.evaluate has `targets`, which end the training when they are reached");
  t.expect("TEST.PRECISE_BN.ENABLED", literal(false),
           "statistics are those of training; frozen_bn keeps those of the weights");
  t.read("TEST.PRECISE_BN.NUM_ITER");
}

}  // namespace millrace::detectron2
