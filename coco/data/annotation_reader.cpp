#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "millrace/coco/data/list_pieces.h"
#include "millrace/coco/data/readers.h"
#include "millrace/coco/data/segmentation.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kImages = "images", kAnnotations = "annotations",
                           kCategories = "categories";

// Maximum side; OpenCV does not open larger images.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 20;

std::int32_t side(JsonReader& json, std::string_view field) {
  json.next();
  const char* at = json.at();
  const std::int64_t pixels = json.integer();
  if (pixels < 1 || pixels > kMostPixels)
    throw Wrong{at, fmt::format("'{}' is {}; expected 1 to {} pixels", field, pixels, kMostPixels)};
  return static_cast<std::int32_t>(pixels);
}

/// Reads one of LVIS's category lists; null is an empty list.
std::vector<std::int64_t> category_list(JsonReader& json) {
  std::vector<std::int64_t> ids;
  if (!json.take_null()) json.each([&] { ids.push_back(json.integer()); });
  return ids;
}

void read_image(JsonReader& json, Records& records) {
  const char* at = json.at();
  Image one;
  bool has_name = false;
  std::optional<std::string> url;
  std::vector<std::int64_t> negatives, not_exhaustive;
  json.fields(
      required("id", [&] { one.id = json.integer(); }),
      optional("file_name",
               [&] {
                 one.file_name = records.add_text(json.text());
                 has_name = true;
               }),
      required("width", [&] { one.width = side(json, "width"); }),
      required("height", [&] { one.height = side(json, "height"); }),
      optional("coco_url", [&] { url = json.text_if_any(); }),
      optional("neg_category_ids", [&] { negatives = category_list(json); }),
      optional("not_exhaustive_category_ids", [&] { not_exhaustive = category_list(json); }));
  if (!has_name) {
    if (!url) throw Wrong{at, "'file_name' is missing"};
    // LVIS 1.0 has no file_name.
    one.file_name = records.add_text(url->substr(url->rfind('/') + 1));
  }
  one.category_lists = records.category_lists.size();
  for (const auto& list : {negatives, not_exhaustive})
    records.category_lists.insert(records.category_lists.end(), list.begin(), list.end());
  one.negatives = static_cast<std::uint32_t>(negatives.size());
  one.not_exhaustive = static_cast<std::uint32_t>(not_exhaustive.size());
  if (std::int64_t{one.width} * one.height > UINT32_MAX)  // run lengths are 32-bit
    throw Wrong{at, fmt::format("{} x {} pixels are too many; the limit is 2^32 - 1", one.width,
                                one.height)};
  records.images.push_back(one);
}

void read_category(JsonReader& json, Records& records) {
  Category one;
  json.fields(required("id", [&] { one.id = json.integer(); }),
              required("name", [&] { one.name = records.add_text(json.text()); }),
              optional("frequency", [&] {
                const auto letter = json.text_if_any();
                if (letter == "r" || letter == "c" || letter == "f")
                  one.frequency = letter->front();
              }));
  records.categories.push_back(one);
}

/// The records of a list, or of a piece of it.
struct RecordPart {
  void (*read_record)(JsonReader&, Records&);
  Records records = {};

  void clear() { records.clear(); }
  /// Reads a record. A record that cannot be read leaves no traces.
  void read(JsonReader& json) {
    std::array<std::size_t, 9> sizes;
    std::size_t k = 0;
    each_array([&](const auto& array) { sizes[k++] = array.size(); }, records);
    try {
      read_record(json, records);
    } catch (...) {
      k = 0;
      each_array([&](auto& array) { array.resize(sizes[k++]); }, records);
      throw;
    }
  }
};

/// The three sections of a file.
struct Sections {
  RecordPart images{read_image}, annotations{read_annotation}, categories{read_category};

  /// Reads the sections. `on_list(name)` must read every list except the categories.
  template <typename F>
  void read(JsonReader& json, F on_list) {
    json.fields(required(kImages, [&] { on_list(kImages); }),
                required(kAnnotations, [&] { on_list(kAnnotations); }),
                required(kCategories, [&] { read_list(json, kCategories, categories); }));
  }

  static void read_list(JsonReader& json, std::string_view name, RecordPart& part) {
    json.list(name, [&] { part.read(json); });
  }
};

/// Reads the sections in file order. `begins` receives the byte offset of each annotation.
GatheredRecords read_in_order(const JsonText& file, std::vector<std::size_t>& begins,
                              const std::function<void(const RecordFault&)>& on_fault = {}) {
  Sections all;
  file.read('{', [&](JsonReader& json) {
    if (on_fault) json.tolerate(on_fault);
    all.read(json, [&](std::string_view name) {
      if (name == kImages) return Sections::read_list(json, name, all.images);
      json.list(name, [&] {
        const char* at = json.at();
        all.annotations.read(json);
        begins.push_back(json.offset(at));
      });
    });
  });
  GatheredRecords result(std::move(all.annotations.records));
  result.append(all.images.records);
  result.append(all.categories.records);
  return result;
}

std::shared_ptr<const Dataset> parse(std::string json, const std::string& source) {
  const JsonText text(std::move(json), source);
  std::vector<std::size_t> begins;
  auto records = read_in_order(text, begins);
  try {
    return assemble(std::move(records), source);
  } catch (const RecordConflict& problem) {
    if (problem.annotation) text.fail(begins[*problem.annotation], problem.what());
    throw Error(fmt::format("{}: {}", source, problem.what()));
  }
}

/// A list in a file that is read in pieces.
struct List {
  std::string_view name;
  std::uint64_t first, last = 0;  // bytes of its brackets
};

/// Finds the first list at or after byte `from` with one of these names.
std::optional<List> find_list(const InputFile& file, std::uint64_t from,
                              std::span<const std::string_view> names) {
  constexpr std::size_t kTail = 64;           // room for the name, a colon and white space
  std::size_t window = std::size_t{1} << 12;  // bytes searched at once; lists usually begin early
  for (std::uint64_t begin = from; begin < file.size(); begin += window - kTail) {
    if (begin != from) window = std::size_t{1} << 18;
    const std::string text = text_at(file, begin, window);
    std::optional<List> found;
    for (const auto name : names) {
      const auto key = fmt::format("\"{}\"", name);
      for (std::size_t at = 0; (at = text.find(key, at)) != text.npos; ++at) {
        const std::size_t colon = skip_space(text, at + key.size());
        if (text.substr(colon, 1) != ":") continue;
        const std::size_t list = skip_space(text, colon + 1);
        if (text.substr(list, 1) != "[") continue;
        if (!found || begin + list < found->first) found = {name, begin + list};
        break;
      }
    }
    if (found) return found;
  }
  return {};
}

/// Reads the file without the contents of these lists. Returns false if they are not the file's
/// sections. `faults` as in `read_pieces`.
bool read_rest(const InputFile& file, std::span<const List> lists, Sections& rest,
               std::vector<RecordFault>* faults) {
  std::size_t found = 0;
  try {
    std::string bytes;
    std::map<std::string_view, std::size_t> brackets;  // positions in `bytes`
    std::uint64_t from = 0;
    for (const List& list : lists) {
      bytes += text_at(file, from, list.first + 1 - from);
      brackets[list.name] = bytes.size() - 1;
      from = list.last;
    }
    bytes += text_at(file, from, file.size() - from);
    const JsonText text(std::move(bytes), "the rest");
    text.read('{', [&](JsonReader& json) {
      if (faults)
        json.tolerate([&](RecordFault fault) {
          for (const List& list : lists)
            if (fault.byte > list.first) fault.byte += list.last - list.first - 1;
          faults->push_back(std::move(fault));
        });
      rest.read(json, [&](std::string_view name) {
        const auto bracket = brackets.find(name);
        if (bracket == brackets.end()) return Sections::read_list(json, name, rest.images);
        json.next();
        const bool is_own = json.offset(json.at()) == bracket->second;
        json.each([&] { throw Error("another list"); });  // was read in pieces
        if (!is_own) throw Error("another list");
        ++found;
      });
    });
  } catch (const Error&) {  // reported when the file is read in order
    return false;
  }
  return found == lists.size();
}

std::optional<Spill> spill_for(const InputFile& file, const fs::path& folder) {
  return file.size() < kLeastSpilled ? std::nullopt : std::optional(Spill{folder});
}

}  // namespace

void throw_first_fault(const InputFile& file, const std::string& source,
                       const std::optional<Spill>& spill) {
  std::vector<RecordFault> faults;
  read_pieces(file, kPieceBytes, spill, &faults);
  if (faults.empty()) return;
  const RecordFault& first = faults.front();
  constexpr std::uint64_t kWindow = std::uint64_t{1} << 20;
  std::ptrdiff_t line = 1;
  for (std::uint64_t begin = 0; begin < first.byte; begin += kWindow) {
    const auto text = text_at(file, begin, std::min(kWindow, first.byte - begin));
    line += std::ranges::count(text, '\n');
  }
  throw Error(fmt::format("{}: line {}, byte {}: {}: {}", source, line, first.byte,
                          record_name(first.section, first.index, first.id), first.why));
}

bool is_worth_pieces(const fs::path& file) {
  std::error_code no_size;
  const auto size = fs::file_size(file, no_size);
  constexpr std::uint64_t kLeast = 2 << 20;  // bytes from which a second thread pays off
  return !no_size && size >= kLeast;
}

std::optional<GatheredRecords> read_pieces(const InputFile& file, std::size_t piece_bytes,
                                           const std::optional<Spill>& spill,
                                           std::vector<RecordFault>* faults) {
  Sections rest;
  GatheredRecords all(spill);
  std::vector<std::string_view> names = {kImages, kAnnotations};
  std::vector<List> lists;
  while (!names.empty()) {
    auto list = find_list(file, lists.empty() ? 0 : lists.back().last, names);
    if (!list) break;
    const bool annotations = list->name == kAnnotations;
    bool first = annotations;
    const auto append = [&](RecordPart& part, std::size_t pieces) {
      if (std::exchange(first, false)) all.reserve(part.records, pieces);
      all.append(part.records);
    };
    const auto last = read_list(file, list->name, list->first, piece_bytes,
                                annotations ? rest.annotations : rest.images, append, faults);
    if (!last) return {};
    list->last = *last;
    std::erase(names, list->name);
    lists.push_back(*list);
  }
  if (!read_rest(file, lists, rest, faults)) return {};
  if (faults) std::ranges::stable_sort(*faults, {}, &RecordFault::byte);
  all.append(rest.images.records);
  all.append(rest.categories.records);
  return all;
}

std::shared_ptr<const Dataset> parse_dataset(std::string_view json, const std::string& source) {
  return parse(std::string(json), source);
}

std::shared_ptr<const Dataset> read_dataset(const fs::path& json) {
  return read_dataset(json, fs::temp_directory_path());
}

std::shared_ptr<const Dataset> read_dataset(const fs::path& json, const fs::path& spools) {
  if (is_worth_pieces(json)) {
    const auto file = open_json(json, '{');
    const auto spill = spill_for(file, spools);
    try {
      if (auto records = read_pieces(file, kPieceBytes, spill))
        return assemble(std::move(*records), json.string());
    } catch (const RecordConflict& problem) {  // reported below with its place in the file
      if (file.size() > kMostText)
        throw Error(fmt::format("{}: {}", json.string(), problem.what()));
    }
    if (file.size() > kMostText) throw_first_fault(file, json.string(), spill);
  }
  return parse(read_json(json, '{'), json.string());
}

std::shared_ptr<const Dataset> read_valid_records(const fs::path& json,
                                                  const FaultListener& listener) {
  const auto file = open_json(json, '{');
  std::vector<RecordFault> faults;
  auto records =
      read_pieces(file, kPieceBytes, spill_for(file, fs::temp_directory_path()), &faults);
  if (records) {
    for (const RecordFault& fault : faults) listener.unreadable(fault);
  } else {
    std::vector<std::size_t> begins;
    records = read_in_order({read_json(json, '{'), json.string()}, begins, listener.unreadable);
  }
  return assemble(std::move(*records), json.string(), listener.on_conflict);
}

}  // namespace millrace::coco
