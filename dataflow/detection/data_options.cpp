#include "millrace/dataflow/detection/data_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/options.h"
#include "millrace/dataflow/detection/pad.h"

namespace millrace {
namespace {

/// Returns true for tcp://HOST:PORT or ipc://FILE to which a consumer can connect.
bool is_address(std::string_view text) {
  if (text.starts_with("ipc://")) return text.size() > 6;
  if (!text.starts_with("tcp://")) return false;
  const auto colon = text.rfind(':');
  const auto host = text.substr(6, colon - std::min<std::size_t>(colon, 6));
  const auto digits = text.substr(colon + 1);
  int port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return colon > 6 && !host.empty() && host != "*" && problem == std::errc() &&
         end == digits.data() + digits.size() && port >= 1 && port <= 65535;
}

}  // namespace

/// Paths decide nothing about batches, since data may move: samples and classes themselves are
/// compared (see batch_facts).
void DataSetOptions::describe(Options& o) {
  o.add("root", root, "folder of the data set: annotations/instances_<split>.json and <split>/")
      .decides(Decides::run);
  o.add("train", train, "the split to train on").decides(Decides::run);
  o.add("val", val, "the split to evaluate on").decides(Decides::evaluation);
  o.add("classes", classes, "names of the categories to detect, in order; none: every category")
      .decides(Decides::run);
  o.add("filter_empty", filter_empty, "leave images without a usable object out of training");
}

void BatchOptions::describe(Options& o) {
  o.add("batch_size", batch_size, "of training, per process",
        {.min = 1, .max = 65536, .unit = "images"})
      .decides(Decides::batches | Decides::run);  // the learning rate is scaled by it
  o.add("test_batch_size", test_batch_size,
        "of evaluation, per process; images of one padded size are detected together, so it "
        "changes no result except by rounding",
        {.min = 1, .max = 65536, .unit = "images"})
      .decides(Decides::evaluation);
  o.add("aspect_grouping", aspect_grouping, "batch wide with wide and tall with tall images");
  o.add("shape_buckets", shape_buckets,
        "> 0: batch in so many groups of like shape, chosen from the data set for the least "
        "padding",
        {.min = 0, .max = 64});
  o.add("divisor", divisor, "batches are padded to a multiple of it",
        {.min = 1, .max = 1024, .unit = "pixels"})
      .decides(Decides::batches | Decides::evaluation);
  o.add("pad_shapes", pad_shapes,
        "training batches have the smallest of these shapes that fits instead, such as "
        "[\"1344x800\", \"800x1344\"]; one: a fixed size");
}

void ImageOptions::describe(Options& o) {
  constexpr auto both = Decides::batches | Decides::evaluation;
  o.add("flip", flip, "chance to mirror a training image", {.min = 0, .max = 1});
  o.add("short_side", short_side, "images are resized to this; several: one of them at random",
        {.min = 1, .max = 16384, .unit = "pixels", .least = 1})
      .decides(both);
  o.add("short_side_range", short_side_range, "short_side is [lowest, highest] instead of choices");
  o.add("max_side", max_side, "maximum length of the longer side",
        {.min = 1, .max = 65535, .unit = "pixels"})
      .decides(both);
  o.add("resize_style", resize_style,
        "how sides become whole pixels and masks follow: rounded, polygons scaled (opencv, and "
        "detectron2, which has Pillow's antialiasing and never reduced_decoding); cut, bitmaps "
        "sampled (torchvision); cut, polygons scaled (yolox); or square: both sides short_side, "
        "max_side unused")
      .decides(both);
  o.add("reduced_decoding", reduced_decoding,
        "in training a JPEG of twice the size that is needed, or more, is decoded at a half, a "
        "quarter or an eighth of its own");
  o.add("eval_reduced_decoding", eval_reduced_decoding,
        "the same in evaluation: faster, with other scores than `trainer predict` gives")
      .decides(Decides::evaluation);
  o.add("strict_decoding", strict_decoding,
        "a JPEG that ends too early cannot be used; false: what it holds is decoded, the rest grey")
      .decides(both);
  o.add("max_pixels", max_pixels,
        "an image of more pixels cannot be used, since decoding it may exhaust the memory; 0 = "
        "unlimited",
        {.min = 0, .max = 1 << 30, .unit = "pixels"})
      .decides(both);
  o.add("test_short_side", test_short_side, "of evaluation; 0: the largest of short_side",
        {.min = 0, .max = 16384, .unit = "pixels"})
      .decides(Decides::evaluation);
  o.add("test_max_side", test_max_side, "of evaluation; 0: max_side",
        {.min = 0, .max = 65535, .unit = "pixels"})
      .decides(Decides::evaluation);
}

void PaceOptions::describe(Options& o) {
  o.add("threads", threads, "of the flow graph; 0: all cores", {.min = 0, .max = 4096})
      .decides(Decides::run);
  o.add("in_flight", in_flight,
        "images between disk and trainer; 0: enough to keep all threads busy",
        {.min = 0, .max = 1e6, .unit = "images"})
      .decides(Decides::run);
  o.add("memory", memory,
        "that images between disk and trainer may take, unless a batch takes more; 0: no bound",
        {.min = 0, .max = 1 << 24, .unit = "MiB"})
      .decides(Decides::run);
  o.add("shuffle_window", shuffle_window,
        "shuffle windows of so many neighbouring images, and inside them; 0: all images",
        {.min = 0, .unit = "images"});
}

void FaultOptions::describe(Options& o) {
  o.add("on_error", on_error, "what to do about an image that cannot be used");
  o.add("max_skipped", max_skipped, "share of an epoch's images that may be unusable",
        {.min = 0, .max = 1})
      .decides(Decides::run);
}

void RemoteOptions::describe(Options& o) {
  o.add("source", source,
        "training takes its batches from these data servers (`trainer serve`), such as "
        "[\"tcp://a:5555\", \"tcp://b:5555\"]; none: they are made here")
      .decides(Decides::run);
  o.add("source_timeout", source_timeout, "without any data server for so long is an error",
        {.min = 1, .max = 1e6})
      .decides(Decides::run);
  o.add("source_key", source_key,
        "file with our secret key, for servers that want one; `trainer serve --keygen NAME` makes "
        "it")
      .decides(Decides::run);
  o.add("source_server_key", source_server_key, "file with the servers' public key")
      .decides(Decides::run);
}

void DataOptions::describe(Options& o) {
  DataSetOptions::describe(o);
  BatchOptions::describe(o);
  ImageOptions::describe(o);
  PaceOptions::describe(o);
  FaultOptions::describe(o);
  RemoteOptions::describe(o);
}

void DataOptions::check(const Config& table) const {
  for (std::unordered_set<std::string_view> seen; const auto& name : classes)
    require(table, "classes", seen.insert(name).second, fmt::format("has '{}' twice", name));
  if (short_side_range)
    require(table, "short_side", short_side.size() == 2 && short_side[0] <= short_side[1],
            "is [lowest, highest] with short_side_range = true");
  for (const auto& shape : pad_shapes) try {
      parse_shape(shape);
    } catch (const std::invalid_argument& problem) {
      require(table, "pad_shapes", false, problem.what());
    }
  for (const auto& address : source)
    require(
        table, "source", is_address(address),
        fmt::format("has '{}', which is no address: write tcp://HOST:PORT or ipc://FILE", address));
  const bool has_one = source_key.empty() != source_server_key.empty();
  require(table, source_key.empty() ? "source_server_key" : "source_key", !has_one,
          fmt::format("and data.{} go together: our secret key, and the servers' public key",
                      source_key.empty() ? "source_key" : "source_server_key"));
  if (on_error == OnError::fail)
    refuse_unused<DataOptions>(table, {"max_skipped"}, "with on_error = \"fail\"");
  if (shape_buckets > 0)
    refuse_unused<DataOptions>(table, {"aspect_grouping"}, "with shape_buckets > 0");
}

Config data_value(const std::string& key, DataOptions data) {
  const auto options = described(data);
  const auto found = std::ranges::find_if(
      options.entries(), [&](const auto& entry) { return "data." + entry.name == key; });
  if (found == options.entries().end())
    throw Error(fmt::format("an option follows '{}', but [data] has no such key", key));
  return Options::value(*found);
}

}  // namespace millrace
