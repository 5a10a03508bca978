#include <fmt/format.h>

#include <string>
#include <system_error>
#include <utility>

#include "millrace/coco/data/list_pieces.h"
#include "millrace/coco/data/readers.h"
#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {
namespace {

constexpr std::string_view kAnnotations = "annotations";

std::int32_t side(json::value value, std::string_view field) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // OpenCV opens no larger ones
  const char* at = place(value);
  const std::int64_t pixels = integer(value, field);
  if (pixels < 1 || pixels > kMost)
    throw Wrong{
        at, fmt::format("'{}' is {}; an image has 1 to {} pixels a side", field, pixels, kMost)};
  return static_cast<std::int32_t>(pixels);
}

/// LVIS's lists of categories; null is none.
std::vector<std::int64_t> category_list(json::value value, std::string_view field) {
  std::vector<std::int64_t> ids;
  if (*place(value) == 'n' && value.is_null()) return ids;
  for (json::value id : array(value, field)) ids.push_back(integer(id, field));
  return ids;
}

void read_image(json::object fields, const char* at, Records& records) {
  Image one;
  bool has_name = false;
  std::optional<std::string> url;
  std::vector<std::int64_t> negatives, not_exhaustive;
  read_fields(fields, at, required("id", one.id),
              optional("file_name",
                       [&](json::value v) {
                         one.file_name = records.add_text(text(v, "file_name"));
                         has_name = true;
                       }),
              required("width", [&](json::value v) { one.width = side(v, "width"); }),
              required("height", [&](json::value v) { one.height = side(v, "height"); }),
              optional("coco_url",
                       [&](json::value v) {
                         if (*place(v) == '"') url = text(v, "coco_url");
                       }),
              optional("neg_category_ids",
                       [&](json::value v) { negatives = category_list(v, "neg_category_ids"); }),
              optional("not_exhaustive_category_ids", [&](json::value v) {
                not_exhaustive = category_list(v, "not_exhaustive_category_ids");
              }));
  if (!has_name) {
    if (!url) throw Wrong{at, "'file_name' is missing"};
    one.file_name = records.add_text(url->substr(url->rfind('/') + 1));  // as LVIS 1.0 has it
  }
  one.category_lists = records.category_lists.size();
  for (const auto& list : {negatives, not_exhaustive})
    records.category_lists.insert(records.category_lists.end(), list.begin(), list.end());
  one.negatives = static_cast<std::uint32_t>(negatives.size());
  one.not_exhaustive = static_cast<std::uint32_t>(not_exhaustive.size());
  if (std::int64_t{one.width} * one.height > UINT32_MAX)  // what run lengths count with
    throw Wrong{at, fmt::format("{} x {} pixels are too many; an image has less than 2^32",
                                one.width, one.height)};
  records.images.push_back(one);
}

void read_category(json::object fields, const char* at, Records& records) {
  Category one;
  read_fields(
      fields, at, required("id", one.id),
      required("name", [&](json::value v) { one.name = records.add_text(text(v, "name")); }),
      optional("frequency", [&](json::value v) {
        if (*place(v) != '"') return;
        const std::string_view letter = text(v, "frequency");
        if (letter == "r" || letter == "c" || letter == "f") one.frequency = letter.front();
      }));
  records.categories.push_back(one);
}

void read_annotation(json::object fields, const char* at, Records& records) {
  Annotation one;
  bool has_area = false, has_number = false;
  read_fields(
      fields, at, required("id", one.id), required("image_id", one.image_id),
      required("category_id", one.category_id),
      required("bbox",
               [&](json::value v) {
                 if (!read_box(v, one.bbox))
                   throw Wrong{place(v), "'bbox' is empty; it needs 4 numbers"};
               }),
      optional("area",
               [&](json::value v) {
                 one.area = number(v, "area");
                 has_area = true;
               }),
      optional("iscrowd", [&](json::value v) { one.crowd = flag(v, "iscrowd"); }),
      optional("ignore",
               [&](json::value v) {
                 one.ignored = *place(v) != 'n' && flag(v, "ignore");  // some tools write null
               }),
      optional("segmentation", [&](json::value v) { one.shape = read_segmentation(v, records); }),
      optional("keypoints",
               [&](json::value v) {
                 const std::size_t begin = records.keypoints.size();
                 one.keypoint_count = read_keypoints(v, records.keypoints);
                 if (one.keypoint_count > 0) one.keypoints = begin;
               }),
      optional("num_keypoints", [&](json::value v) {
        if (*place(v) == 'n' && v.is_null()) return;
        one.num_keypoints = static_cast<std::int32_t>(integer(v, "num_keypoints"));
        has_number = true;
      }));
  if (!has_number)
    for (std::size_t i = 0; i < one.keypoint_count; ++i)
      one.num_keypoints += records.keypoints[one.keypoints + 3 * i + 2] > 0;
  if (!has_area) {
    const bool box_only = one.shape.kind == ShapeKind::none;
    one.area = box_only ? one.bbox[2] * one.bbox[3] : shape_area(one.shape, records);
  }
  records.annotations.push_back(one);
}

/// Reads the sections of a whole file. `on_annotations` must iterate over the array that it gets.
template <typename F>
void read_sections(JsonText& file, Records& records, F on_annotations) {
  const auto section = [&](std::string_view name, auto read) {
    return required(name, [&file, &records, name, read](json::value v) {
      file.each_record(array(v, name), name,
                       [&](json::object fields, const char* at) { read(fields, at, records); });
    });
  };
  file.read(section("images", read_image), required(kAnnotations, on_annotations),
            section("categories", read_category));
}

/// Reads the sections in the order of the file; `begins` gets the byte of each annotation.
Records read_in_order(JsonText& file, std::vector<std::size_t>& begins) {
  Records all, one;
  read_sections(file, all, [&](json::value v) {
    file.each_record(array(v, kAnnotations), kAnnotations,
                     [&](json::object fields, const char* at) {
                       one.clear();  // also of what a broken record left
                       read_annotation(fields, at, one);
                       all.add_annotations(one);
                       begins.push_back(file.offset(at));
                     });
  });
  return all;
}

std::shared_ptr<const Dataset> parse(std::string json, const std::string& source) {
  JsonText text(std::move(json), source);
  std::vector<std::size_t> begins;
  auto records = read_in_order(text, begins);
  try {
    return assemble(std::move(records), source);
  } catch (const Contradiction& problem) {
    if (problem.annotation) text.fail(begins[*problem.annotation], problem.what());
    text.fail(problem.what());
  }
}

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

/// Reads all but the list of annotations; false if `first` and `last` were not its brackets.
bool read_rest(const InputFile& file, std::uint64_t first, std::uint64_t last, Records& records) {
  bool found = false;
  try {
    std::string bytes = text_at(file, 0, first + 1);
    bytes += text_at(file, last, file.size() - last);
    JsonText text(std::move(bytes), "the rest");
    read_sections(text, records, [&](json::value section) {
      found = text.offset(place(section)) == first;
      text.each_record(array(section, kAnnotations), kAnnotations,
                       [](json::object, const char* at) {
                         throw Wrong{at, "another list"};
                       });
    });
  } catch (const Error&) {  // reported when the file is read in order
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
  as(records.keypoints, part.keypoints);
  as(records.polygon_ends, part.polygon_ends);
  as(records.runs, part.runs);
}

}  // namespace

bool is_worth_pieces(const std::filesystem::path& file) {
  std::error_code no_size;
  const auto size = std::filesystem::file_size(file, no_size);
  return !no_size && size >= 2 * kPieceBytes;
}

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

std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source) {
  return parse(std::string(json), source);
}

std::shared_ptr<const Dataset> read_dataset(const std::filesystem::path& json) {
  if (is_worth_pieces(json)) {
    try {
      if (auto records = read_pieces(open_json(json, '{'), kPieceBytes))
        return assemble(std::move(*records), json.string());
    } catch (const Contradiction&) {  // reported below, with its place in the file
    }
  }
  return parse(read_json(json, '{'), json.string());
}

std::shared_ptr<const Dataset> read_sound_records(const std::filesystem::path& json,
                                                  const FaultListener& listener) {
  auto records = read_pieces(open_json(json, '{'), kPieceBytes);
  if (!records) {
    JsonText text(read_json(json, '{'), json.string());
    text.tolerate(listener.unreadable);
    std::vector<std::size_t> begins;
    records = read_in_order(text, begins);
  }
  return assemble(std::move(*records), json.string(), listener.contradiction);
}

}  // namespace millrace::coco
