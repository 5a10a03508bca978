#include "millrace/coco/data/annotation_pieces.h"

#include <string>

#include "millrace/coco/data/list_pieces.h"
#include "millrace/coco/data/record_reader.h"

namespace millrace::coco {
namespace {

constexpr std::string_view kAnnotations = "annotations";

/// Byte of the '[' that opens the first list named "annotations".
std::optional<std::uint64_t> find_list(const InputFile& file) {
  constexpr std::string_view kKey = "\"annotations\"";
  constexpr std::size_t kTail = 64;  // room for the key, a colon and white space
  constexpr std::size_t kWindow = std::size_t{1} << 18;  // searched at a time
  for (std::uint64_t begin = 0; begin < file.size(); begin += kWindow - kTail) {
    const std::string text = text_at(file, begin, kWindow);
    for (std::size_t key = 0; (key = text.find(kKey, key)) != text.npos; ++key) {
      const std::size_t colon = skip_space(text, key + kKey.size());
      if (text.substr(colon, 1) != ":") continue;
      const std::size_t list = skip_space(text, colon + 1);
      if (text.substr(list, 1) == "[") return begin + list;
    }
  }
  return {};
}

/// The annotations of a piece.
struct AnnotationPart {
  Records records;

  void clear() { records.clear(); }
  void read(json::object fields, const char* at) { read_annotation(fields, at, records); }
};

/// Reads the file without what lies between the brackets of the list of annotations; whether that
/// was right.
bool read_rest(const InputFile& file, std::uint64_t first, std::uint64_t last, Records& records) {
  bool found = false;
  try {
    JsonText text("the rest");
    text.replace([&](std::string& bytes) {
      const std::uint64_t head = first + 1, tail = file.size() - last;
      bytes.reserve(head + tail + simdjson::SIMDJSON_PADDING);
      bytes.resize(head + tail);
      file.read(0, std::span(bytes).first(head));
      file.read(last, std::span(bytes).last(tail));
    });
    read_sections(text, records, [&](json::value section) {
      found = text.offset(place(section)) == first;
      text.each_record(array(section, kAnnotations), kAnnotations,
                       [](json::object, const char* at) {
                         throw Wrong{at, "another list"};
                       });
    });
  } catch (const Error&) {  // told by whoever reads the file in order
    return false;
  }
  return found;
}

/// Room for so many parts like `part`, and a little more: arrays that grow are copied each time.
void reserve(Records& records, const Records& part, std::size_t parts) {
  const auto as = [&](auto& array, const auto& of_part) {
    array.reserve(of_part.size() * (parts + 1) / 8 * 9);
  };
  as(records.annotations, part.annotations);
  as(records.coordinates, part.coordinates);
  as(records.polygon_ends, part.polygon_ends);
  as(records.runs, part.runs);
}

}  // namespace

std::optional<Records> read_pieces(const InputFile& file, std::size_t piece_bytes) {
  const auto first = find_list(file);
  if (!first) return {};
  Records all;
  const auto append = [&](const AnnotationPart& part, std::size_t pieces) {
    if (all.annotations.empty()) reserve(all, part.records, pieces);
    all.add_annotations(part.records);
  };
  const auto last = read_list(file, *first, piece_bytes, AnnotationPart(), append);
  if (!last || !read_rest(file, *first, *last, all)) return {};
  return all;
}

}  // namespace millrace::coco
