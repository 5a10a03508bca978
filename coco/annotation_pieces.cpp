#include "coco/annotation_pieces.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <string>

#include "coco/record_reader.h"

namespace millrace::coco {
namespace {

constexpr std::string_view kSection = "annotations";
constexpr std::size_t kWindow = std::size_t{1} << 18;  // searched at a time; longer than a record

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

/// Cuts what follows `begin` after about each `piece_bytes`, at the comma between "}" and "{".
std::vector<Range> cut(const InputFile& file, std::uint64_t begin, std::size_t piece_bytes) {
  std::vector<Range> pieces;
  for (std::uint64_t from = begin + piece_bytes; from < file.size(); from += piece_bytes) {
    const std::string text = text_at(file, from, kWindow);
    for (std::size_t brace = 0; (brace = text.find('}', brace)) != text.npos; ++brace) {
      const std::size_t comma = skip_space(text, brace + 1);
      if (text.substr(comma, 1) != ",") continue;
      const std::size_t next = skip_space(text, comma + 1);
      if (text.substr(next, 1) != "{") continue;
      pieces.push_back({begin, from + brace + 1});
      begin = from + next;
      from = std::max(from, begin);
      break;
    }
  }
  pieces.push_back({begin, file.size()});
  return pieces;
}

/// Reads pieces, one at a time, in the same memory.
class PieceReader {
 public:
  struct Piece {
    Records records;
    bool whole = false;                 // it could be read
    std::optional<std::uint64_t> last;  // byte of the ']' where the list ended inside of it
  };

  explicit PieceReader(const InputFile& file) : file_(file) {}

  Piece read(Range range) {
    Piece piece;
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
          [&](json::object fields, const char* at) { read_annotation(fields, at, piece.records); });
      if (end <= count) piece.last = range.begin + end - 1;  // not the bracket from here
      piece.whole = true;
    } catch (const Error&) {  // told by whoever reads the file in order
    }
    return piece;
  }

 private:
  const InputFile& file_;
  JsonText text_{"a piece"};
};

/// Reads the file without what lies between the brackets of the list of annotations.
std::optional<Records> read_rest(const InputFile& file, std::uint64_t first, std::uint64_t last) {
  Records rest;
  bool found = false;
  try {
    JsonText text(text_at(file, 0, first + 1) + text_at(file, last, file.size() - last),
                  "the rest");
    read_sections(text, rest, [&](json::value section) {
      found = text.offset(place(section)) == first;
      text.each_record(array(section, kSection), kSection, [](json::object, const char* at) {
        throw Wrong{at, "another list"};
      });
    });
  } catch (const Error&) {  // told by whoever reads the file in order
    return {};
  }
  if (!found) return {};
  return rest;
}

}  // namespace

std::optional<std::vector<Records>> read_pieces(const InputFile& file, std::size_t piece_bytes) {
  const auto first = find_list(file);
  if (!first) return {};
  const auto ranges = cut(file, *first + 1, piece_bytes);
  std::vector<PieceReader::Piece> pieces(ranges.size());
  tbb::enumerable_thread_specific<PieceReader> readers([&] { return PieceReader(file); });
  tbb::parallel_for(std::size_t{0}, ranges.size(),
                    [&](std::size_t i) { pieces[i] = readers.local().read(ranges[i]); });

  std::vector<Records> parts(1);
  for (auto& piece : pieces) {
    if (!piece.whole) return {};
    parts.push_back(std::move(piece.records));
    if (!piece.last) continue;
    auto rest = read_rest(file, *first, *piece.last);
    if (!rest) return {};
    parts.front() = std::move(*rest);
    return parts;
  }
  return {};
}

}  // namespace millrace::coco
