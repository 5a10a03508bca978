// The `[data]` table: the data set, how it is read, and how a flow over it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/coco/sample/sample.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// The images of the data set, and the classes of objects to detect.
struct DataSetOptions {
  std::string root = "data/sample";
  std::string train = "train2017";
  std::string val = "val2017";
  Options::Strings classes;
  bool filter_empty = true;

  /// [data.sample] if it belongs to this `root`: the data set that `trainer run` creates there.
  std::optional<coco::SampleOptions> sample = {};

  void describe(Options& o);
};

/// Batching and padding.
struct BatchOptions {
  std::int64_t batch_size = 4;
  std::int64_t test_batch_size = 1;
  bool aspect_grouping = true;
  std::int64_t shape_buckets = 0;
  std::int64_t divisor = 32;
  Options::Strings pad_shapes;

  void describe(Options& o);
};

/// The computation of resized shapes, the rounding of sides to whole pixels, and the resizing of
/// masks.
enum class ResizeStyle {
  opencv,       // sides are rounded, polygons scaled
  detectron2,   // as opencv, but with Pillow's antialiased resize of fully decoded images
  torchvision,  // sides are truncated, masks are rasterised first
  yolox,        // sides are truncated, polygons scaled
  square,       // both sides become short_side, whatever the aspect ratio (DETR's fixed input)
};
inline std::vector<std::string> value_names(ResizeStyle) {
  return {"opencv", "detectron2", "torchvision", "yolox", "square"};
}

/// Returns true if sides are rounded to whole pixels, false if truncated.
inline bool rounds(ResizeStyle style) {
  return style == ResizeStyle::opencv || style == ResizeStyle::detectron2;
}

/// Decoding, flipping and resizing of images.
struct ImageOptions {
  double flip = 0.5;
  Options::Ints short_side = {800};
  bool short_side_range = false;
  std::int64_t max_side = 1333;
  ResizeStyle resize_style = ResizeStyle::opencv;
  bool reduced_decoding = true;        // in training
  bool eval_reduced_decoding = false;  // in evaluation
  bool strict_decoding = true;
  std::int64_t max_pixels = kMaxPixels;
  std::int64_t test_short_side = 0;
  std::int64_t test_max_side = 0;

  std::int64_t settled_test_short_side() const {
    return test_short_side > 0 ? test_short_side : *std::ranges::max_element(short_side);
  }
  std::int64_t settled_test_max_side() const {
    return test_max_side > 0 ? test_max_side : max_side;
  }

  void describe(Options& o);
};

/// Threads, memory and shuffling of the flow.
struct PaceOptions {
  std::int64_t threads = 0;
  std::int64_t in_flight = 0;
  std::int64_t memory = 2048;
  std::int64_t shuffle_window = 0;

  void describe(Options& o);
};

/// The handling of images and annotations that cannot be used.
struct FaultOptions {
  OnError on_error = OnError::skip;
  double max_skipped = 0.1;

  void describe(Options& o);
};

/// Data servers that make the batches of training.
struct RemoteOptions {
  Options::Strings source;
  Duration source_timeout = {300};
  std::string source_key;
  std::string source_server_key;

  void describe(Options& o);
};

/// All keys of `[data]`; a function takes the part that it needs.
struct DataOptions : DataSetOptions,
                     BatchOptions,
                     ImageOptions,
                     PaceOptions,
                     FaultOptions,
                     RemoteOptions {
  void describe(Options& o);

  /// Throws ConfigError for invalid addresses or shapes, contradictions, and values without effect.
  void check(const Config& table) const;
};

/// Returns the value of "data.KEY", for options that follow it. Throws Error for an unknown key.
Config data_value(const std::string& key, DataOptions data);

}  // namespace millrace
