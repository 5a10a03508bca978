// The `[data]` table: which data set, how it is read, how a flow over it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/coco/sample/sample.h"

namespace millrace {

struct DataOptions {
  std::string root = "data/sample";
  std::string train = "train2017";
  std::string val = "val2017";
  Options::Strings classes;
  bool filter_empty = true;

  std::int64_t batch_size = 4;
  std::int64_t test_batch_size = 1;
  bool aspect_grouping = true;
  std::int64_t shape_buckets = 0;
  std::int64_t divisor = 32;
  Options::Strings pad_shapes;

  double flip = 0.5;
  Options::Ints short_side = {800};
  bool short_side_range = false;
  std::int64_t max_side = 1333;
  std::string resize_style = "detectron2";
  bool reduced_decoding = true;
  std::int64_t test_short_side = 0;
  std::int64_t test_max_side = 0;

  std::int64_t threads = 0;
  std::int64_t in_flight = 0;
  std::int64_t memory = 2048;
  std::int64_t shuffle_window = 0;
  std::string on_error = "skip";
  double max_skipped = 0.1;

  Options::Strings source;
  std::int64_t source_timeout = 300;
  std::string source_key;
  std::string source_server_key;

  /// Of [data.sample], where it goes with this `root`: the data set that `trainer run` makes there on first use.
  std::optional<coco::SampleOptions> sample = {};

  void describe(Options& o) {
    o.add("root", root, "folder of the data set: annotations/instances_<split>.json and <split>/");
    o.add("train", train, "the split to train on");
    o.add("val", val, "the split to evaluate on");
    o.add("classes", classes, "names of the categories to detect, in order; none: every category");
    o.add("filter_empty", filter_empty, "leave images without a usable object out of training");
    o.add("batch_size", batch_size, "of training, per process",
          {.min = 1, .max = 65536, .unit = "images"});
    o.add("test_batch_size", test_batch_size,
          "of evaluation, per process; images of one padded size are detected together, so it "
          "changes no result but for rounding",
          {.min = 1, .max = 65536, .unit = "images"});
    o.add("aspect_grouping", aspect_grouping, "batch wide with wide and tall with tall images");
    o.add("shape_buckets", shape_buckets,
          "> 0: batch in so many groups of like shape, chosen from the data set for the least "
          "padding",
          {.min = 0, .max = 64});
    o.add("divisor", divisor, "batches are padded to a multiple of it",
          {.min = 1, .max = 1024, .unit = "pixels"});
    o.add("pad_shapes", pad_shapes,
          "training batches have the smallest of these shapes that fits instead, such as "
          "[\"1344x800\", \"800x1344\"]; one: a fixed size");
    o.add("flip", flip, "chance to mirror a training image", {.min = 0, .max = 1});
    o.add("short_side", short_side, "images are resized to this; several: one of them at random",
          {.min = 1, .max = 16384, .unit = "pixels", .least = 1});
    o.add("short_side_range", short_side_range,
          "short_side is [lowest, highest] instead of choices");
    o.add("max_side", max_side, "the longer side never passes this",
          {.min = 1, .max = 65535, .unit = "pixels"});
    o.add("resize_style", resize_style,
          "how sides become whole pixels and masks follow: rounded, polygons scaled (detectron2); "
          "cut, bitmaps sampled (torchvision)",
          {"detectron2", "torchvision"});
    o.add("reduced_decoding", reduced_decoding,
          "a JPEG of twice the size that is needed, or more, is decoded at a half, a quarter or an "
          "eighth of its own");
    o.add("test_short_side", test_short_side, "of evaluation; 0: the largest of short_side",
          {.min = 0, .max = 16384, .unit = "pixels"});
    o.add("test_max_side", test_max_side, "of evaluation; 0: max_side",
          {.min = 0, .max = 65535, .unit = "pixels"});
    o.add("threads", threads, "of the flow graph; 0: all cores", {.min = 0, .max = 4096});
    o.add("in_flight", in_flight,
          "images between disk and trainer; 0: enough to keep all threads busy",
          {.min = 0, .max = 1e6, .unit = "images"});
    o.add("memory", memory,
          "that images between disk and trainer may take, unless a batch takes more; 0: no bound",
          {.min = 0, .max = 1 << 24, .unit = "MiB"});
    o.add("shuffle_window", shuffle_window,
          "shuffle windows of so many neighbouring images, and inside them; 0: all images",
          {.min = 0, .unit = "images"});
    o.add("on_error", on_error, "what to do about an image that cannot be used",
          {"skip", "fail", "replace"});
    o.add("max_skipped", max_skipped, "share of an epoch's images that may be unusable",
          {.min = 0, .max = 1});
    o.add("source", source,
          "training takes its batches from these data servers (`trainer serve`), such as "
          "[\"tcp://a:5555\", \"tcp://b:5555\"]; none: they are made here");
    o.add("source_timeout", source_timeout, "without any data server for so long is an error",
          {.min = 1, .max = 1e6, .unit = "seconds"});
    o.add(
        "source_key", source_key,
        "file with our secret key, for servers that want one; `trainer serve --keygen NAME` makes "
        "it");
    o.add("source_server_key", source_server_key, "file with the servers' public key");
  }

  /// Throws ConfigError where values are no addresses or shapes, contradict each other or change nothing.
  void check(const Config& table) const;

  std::int64_t settled_test_short_side() const {
    return test_short_side > 0 ? test_short_side : *std::ranges::max_element(short_side);
  }
  std::int64_t settled_test_max_side() const {
    return test_max_side > 0 ? test_max_side : max_side;
  }
};

/// A struct of options read from a table over the defaults that `[data]` gives it, if any: `static S from(const
/// DataOptions&)`. `others` are keys of the table that someone else reads.
template <class S>
S configured(const Config& table, const DataOptions& data,
             std::initializer_list<std::string_view> others = {"use"}) {
  return read_options<S>(table, others, data);
}

}  // namespace millrace
