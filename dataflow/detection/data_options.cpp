#include "millrace/dataflow/detection/data_options.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <string_view>
#include <unordered_set>

#include "millrace/base/errors.h"
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
  o.add("root", root,
        "folder of the data set, with annotations/instances_<split>.json and <split>/")
      .affects(Affects::run);
  o.add("train", train, "name of the training split").affects(Affects::run);
  o.add("val", val, "name of the evaluation split").affects(Affects::evaluation);
  o.add("classes", classes, "names of the categories to detect, in order; empty = all categories")
      .affects(Affects::run);
  o.add("filter_empty", filter_empty, "leave images without a usable object out of training");
}

void BatchOptions::describe(Options& o) {
  o.add("batch_size", batch_size, "training batch size per process",
        {.min = 1, .max = 65536, .unit = "images"})
      .affects(Affects::batches | Affects::run);  // the learning rate is scaled by it
  o.add("test_batch_size", test_batch_size,
        "evaluation batch size per process; changes results only by rounding, since only images of "
        "one padded size are detected together",
        {.min = 1, .max = 65536, .unit = "images"})
      .affects(Affects::evaluation);
  o.add("aspect_grouping", aspect_grouping,
        "batch wide images with wide and tall images with tall ones");
  o.add("shape_buckets", shape_buckets,
        "number of groups of similar shape for batching, chosen from the data set for minimal "
        "padding; 0 = use aspect_grouping",
        {.min = 0, .max = 64});
  o.add("divisor", divisor, "sides of batches are padded to a multiple of this",
        {.min = 1, .max = 1024, .unit = "pixels"})
      .affects(Affects::batches | Affects::evaluation);
  o.add("pad_shapes", pad_shapes,
        "allowed shapes of training batches, each padded to the smallest that fits, such as "
        "[\"1344x800\", \"800x1344\"]; one shape = fixed size; empty = pad to divisor");
}

void ImageOptions::describe(Options& o) {
  constexpr auto both = Affects::batches | Affects::evaluation;
  o.add("flip", flip, "probability of a horizontal flip in training", {.min = 0, .max = 1});
  o.add("short_side", short_side,
        "length of the shorter side after resizing; several = one of them at random",
        {.min = 1, .max = 16384, .unit = "pixels", .least = 1})
      .affects(both);
  o.add("short_side_range", short_side_range,
        "draw short_side from a range [lowest, highest] instead of a list");
  o.add("max_side", max_side, "maximum length of the longer side",
        {.min = 1, .max = 65535, .unit = "pixels"})
      .affects(both);
  o.add("resize_style", resize_style,
        "rounding of sides and resizing of masks: opencv = sides rounded, polygons scaled; "
        "detectron2 = as opencv, with Pillow's antialiasing and without reduced_decoding; "
        "torchvision = sides truncated, masks rasterised first; yolox = sides truncated, polygons "
        "scaled; square = both sides short_side, max_side unused")
      .affects(both);
  o.add("reduced_decoding", reduced_decoding,
        "decode training JPEGs of at least twice the needed size at 1/2, 1/4 or 1/8 of their size");
  o.add("eval_reduced_decoding", eval_reduced_decoding,
        "reduced_decoding in evaluation; faster, but scores differ from those of `trainer predict`")
      .affects(Affects::evaluation);
  o.add("strict_decoding", strict_decoding,
        "treat a truncated JPEG as unusable; false = decode what is there, the rest grey")
      .affects(both);
  o.add("max_pixels", max_pixels,
        "maximum pixels of an image; larger images are unusable, since decoding them may exhaust "
        "the memory; 0 = unlimited",
        {.min = 0, .max = 1 << 30, .unit = "pixels"})
      .affects(both);
  o.add("test_short_side", test_short_side, "short_side in evaluation; 0 = largest of short_side",
        {.min = 0, .max = 16384, .unit = "pixels"})
      .affects(Affects::evaluation);
  o.add("test_max_side", test_max_side, "max_side in evaluation; 0 = max_side",
        {.min = 0, .max = 65535, .unit = "pixels"})
      .affects(Affects::evaluation);
}

void PaceOptions::describe(Options& o) {
  o.add("threads", threads, "threads of the data flow; 0 = all cores", {.min = 0, .max = 4096})
      .affects(Affects::run);
  o.add("in_flight", in_flight,
        "maximum number of prefetched images; 0 = enough to keep all threads busy",
        {.min = 0, .max = 1e6, .unit = "images"})
      .affects(Affects::run);
  o.add("memory", memory, "maximum memory of prefetched images, at least one batch; 0 = unlimited",
        {.min = 0, .max = 1 << 24, .unit = "MiB"})
      .affects(Affects::run);
  o.add("shuffle_window", shuffle_window,
        "size of the windows of consecutive images in which shuffling is done; the windows are "
        "shuffled too; 0 = all images",
        {.min = 0, .unit = "images"});
}

void FaultOptions::describe(Options& o) {
  o.add("on_error", on_error, "reaction to an unusable image");
  o.add("max_skipped", max_skipped, "maximum fraction of unusable images per epoch",
        {.min = 0, .max = 1})
      .affects(Affects::run);
}

void RemoteOptions::describe(Options& o) {
  o.add("source", source,
        "data servers (`trainer serve`) that make the training batches, such as [\"tcp://a:5555\", "
        "\"tcp://b:5555\"]; empty = made in this process")
      .affects(Affects::run);
  o.add("source_timeout", source_timeout, "fail if no data server answers for this long",
        {.min = 1, .max = 1e6})
      .affects(Affects::run);
  o.add("source_key", source_key,
        "file with the client's secret key, for servers that require one; made by `trainer serve "
        "--keygen NAME`")
      .affects(Affects::run);
  o.add("source_server_key", source_server_key, "file with the servers' public key")
      .affects(Affects::run);
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
    require(table, "classes", seen.insert(name).second, fmt::format("contains '{}' twice", name));
  if (short_side_range)
    require(table, "short_side", short_side.size() == 2 && short_side[0] <= short_side[1],
            "must be [lowest, highest] if short_side_range = true");
  for (const auto& shape : pad_shapes) try {
      parse_shape(shape);
    } catch (const std::invalid_argument& problem) {
      require(table, "pad_shapes", false, problem.what());
    }
  for (const auto& address : source)
    require(table, "source", is_address(address),
            fmt::format(
                "contains '{}', which is not an address; expected tcp://HOST:PORT or ipc://FILE",
                address));
  const bool has_one = source_key.empty() != source_server_key.empty();
  require(
      table, source_key.empty() ? "source_server_key" : "source_key", !has_one,
      fmt::format(
          "and data.{} must be set together: the client's secret key and the servers' public key",
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
