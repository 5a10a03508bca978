#include "coco/annotation_pieces.h"

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <string>

#include "coco/record_reader.h"

namespace millrace::coco {
namespace {

constexpr std::string_view kSection = "annotations";
constexpr std::size_t kWindow = std::size_t{1}
                                << 18;  // searched at a time; longer than most records

std::string text_at(const InputFile& file, std::uint64_t begin, std::uint64_t count) {
  std::string text(begin < file.size() ? std::min(count, file.size() - begin) : 0, '\0');
  file.read(begin, text);
  return text;
}

/// Position of the next character that is not white space.
std::size_t skip_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

/// Byte of the '[' that opens the first list named "annotations".
std::optional<std::uint64_t> find_list(const InputFile& file) {
  constexpr std::string_view kKey = "\"annotations\"";
  constexpr std::size_t kTail = 64;  // room for the key, a colon and white space
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

struct Range {
  std::uint64_t begin, end;
};

/// The first place where a comma stands between "}" and "{": the end of the one and the beginning of the other.
std::optional<Range> find_gap(std::string_view text) {
  for (std::size_t brace = 0; (brace = text.find('}', brace)) != text.npos; ++brace) {
    const std::size_t comma = skip_space(text, brace + 1);
    if (text.substr(comma, 1) != ",") continue;
    const std::size_t next = skip_space(text, comma + 1);
    if (text.substr(next, 1) == "{") return Range{brace + 1, next};
  }
  return {};
}

/// Cuts what follows `begin` at a gap after about each `piece_bytes`.
std::vector<Range> cut(const InputFile& file, std::uint64_t begin, std::size_t piece_bytes) {
  std::vector<Range> pieces;
  for (std::uint64_t from = begin + piece_bytes; from < file.size(); from += piece_bytes) {
    std::optional<Range> gap;
    for (std::size_t window = 1 << 12; !gap && window <= kWindow; window *= 8)
      gap = find_gap(text_at(file, from, window));
    if (!gap) continue;
    pieces.push_back({begin, from + gap->begin});
    begin = from + gap->end;
    from = begin;
  }
  pieces.push_back({begin, file.size()});
  return pieces;
}

/// A piece, in memory that serves for one after the other.
class Piece {
 public:
  explicit Piece(const InputFile& file) : file_(file) {}

  void read(Range range) {
    records.clear();
    last.reset();
    const std::size_t count = range.end - range.begin;
    try {
      text_.replace([&](std::string& text) {
        text.resize(count + 2);
        text.front() = '[';
        file_.read(range.begin, std::span(text).subspan(1, count));
        text.back() = ']';
      });
      const std::size_t end = text_.each_record_of_prefix(
          kSection,
          [&](json::object fields, const char* at) { read_annotation(fields, at, records); });
      if (end <= count) last = range.begin + end - 1;
      whole = true;
    } catch (const Error&) {  // told by whoever reads the file in order
      whole = false;
    }
  }

  Records records;
  bool whole = false;                 // it could be read
  std::optional<std::uint64_t> last;  // byte of the ']' where the list ended inside of it

 private:
  const InputFile& file_;
  JsonText text_{"a piece"};
};

/// Reads the file without what lies between the brackets of the list of annotations; whether that was right.
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
      text.each_record(array(section, kSection), kSection, [](json::object, const char* at) {
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
  const auto ranges = cut(file, *first + 1, piece_bytes);

  // Pieces are read side by side and appended in their order. Of the slots, one a token, those of the oldest tokens are
  // free first.
  const auto tokens = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency()) + 1;
  std::deque<Piece> slots;
  for (std::size_t i = 0; i < tokens; ++i) slots.emplace_back(file);
  Records all;
  std::optional<std::uint64_t> last;
  std::atomic<bool> ended = false;
  std::size_t next = 0;
  const auto issue = [&](tbb::flow_control& flow) {
    if (ended || next == ranges.size()) flow.stop();
    return next++;
  };
  const auto read = [&](std::size_t i) {
    slots[i % tokens].read(ranges[i]);
    return i;
  };
  const auto append = [&](std::size_t i) {
    if (ended) return;
    const Piece& piece = slots[i % tokens];
    if (i == 0) reserve(all, piece.records, ranges.size());
    all.add_annotations(piece.records);
    last = piece.last;
    ended = !piece.whole || piece.last;
  };
  using tbb::filter_mode;
  tbb::parallel_pipeline(
      tokens, tbb::make_filter<void, std::size_t>(filter_mode::serial_in_order, issue) &
                  tbb::make_filter<std::size_t, std::size_t>(filter_mode::parallel, read) &
                  tbb::make_filter<std::size_t, void>(filter_mode::serial_in_order, append));

  if (!last || !read_rest(file, *first, *last, all)) return {};
  return all;
}

}  // namespace millrace::coco
