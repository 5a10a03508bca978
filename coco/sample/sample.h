// The sample data set: generated pictures of textured shapes with exact COCO annotations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "millrace/base/options.h"

namespace millrace::coco {

struct SampleOptions {
  std::int64_t train = 512;  // number of images, as is `val`
  std::int64_t val = 128;
  std::int64_t seed = 1;

  bool operator==(const SampleOptions&) const = default;

  void describe(Options& o) {
    o.add("train", train, "images of the training split", {.min = 1, .max = 1e6, .unit = "images"});
    o.add("val", val, "images of the validation split", {.min = 1, .max = 1e6, .unit = "images"});
    o.add("seed", seed, "random seed; equal seeds give equal files", {.min = 0, .max = kAnySeed});
  }
};

/// Writes `train2017/`, `val2017/` and `annotations/instances_{train,val}2017.json` under `folder`,
/// which appears complete or not at all. The bytes do not depend on the number of threads. Throws
/// Error.
void make_sample(const std::filesystem::path& folder, const SampleOptions& options);

/// Returns the options with which make_sample created a folder; nullopt if it did not create it.
/// Throws Error if the folder cannot be read.
std::optional<SampleOptions> sample_in(const std::filesystem::path& folder);

}  // namespace millrace::coco
