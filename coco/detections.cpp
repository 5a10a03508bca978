#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/errors.h"
#include "base/files.h"
#include "coco/annotations.h"
#include "coco/json.h"
#include "coco/segmentation.h"

namespace millrace::coco {
namespace {

Detection read_detection(json::object fields, const char* at) {
  Detection one;
  read_fields(
      fields, at,
      required("image_id", [&](json::value v) { one.image_id = integer(v, "image_id"); }),
      required("category_id", [&](json::value v) { one.category_id = integer(v, "category_id"); }),
      required("score", [&](json::value v) { one.score = number(v, "score"); }),
      optional("bbox", [&](json::value v) { one.has_bbox = numbers_if_any(v, "bbox", one.bbox); }),
      optional("segmentation", [&](json::value v) { one.mask = read_mask(v); }));
  if (!one.has_bbox && one.mask.counts.empty()) {
    throw Wrong{at, "neither 'bbox' nor 'segmentation' is there"};
  }
  return one;
}

/// Appends a number that reads back as the same bits.
void put(std::string& out, double value, std::size_t index, std::string_view field) {
  if (!std::isfinite(value)) {
    throw Error(
        fmt::format("detection {}: its {} is {}; JSON has no such number", index, field, value));
  }
  fmt::format_to(std::back_inserter(out), "{}", value);
}

void put_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  out += '"';
}

}  // namespace

std::vector<Detection> read_detections(const std::filesystem::path& json) {
  JsonText text(read_json(json, '['), json.string());
  std::vector<Detection> detections;
  text.each_record("detections", [&](json::object fields, const char* at) {
    detections.push_back(read_detection(fields, at));
  });
  return detections;
}

void write_detections(const std::filesystem::path& json, std::span<const Detection> detections) {
  std::string out = "[";
  for (std::size_t i = 0; i < detections.size(); ++i) {
    const Detection& one = detections[i];
    fmt::format_to(std::back_inserter(out), "{}{{\"image_id\":{},\"category_id\":{}",
                   i == 0 ? "\n" : ",\n", one.image_id, one.category_id);
    if (one.has_bbox) {
      out += ",\"bbox\":[";
      for (int k = 0; k < 4; ++k) {
        if (k > 0) out += ',';
        put(out, one.bbox[k], i, "box");
      }
      out += ']';
    }
    out += ",\"score\":";
    put(out, one.score, i, "score");
    if (!one.mask.counts.empty()) {
      fmt::format_to(std::back_inserter(out),
                     ",\"segmentation\":{{\"size\":[{},{}],\"counts\":", one.mask.height,
                     one.mask.width);
      put_text(out, encode_counts(one.mask));
      out += '}';
    }
    out += '}';
  }
  out += "\n]\n";
  write_file_atomically(json, out);
}

}  // namespace millrace::coco
