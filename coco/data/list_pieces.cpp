#include "millrace/coco/data/list_pieces.h"

namespace millrace::coco {
namespace {

/// Returns the first gap between two records: after "}", with a comma, before "{".
std::optional<ByteRange> find_gap(std::string_view text) {
  for (std::size_t brace = 0; (brace = text.find('}', brace)) != text.npos; ++brace) {
    const std::size_t comma = skip_space(text, brace + 1);
    if (text.substr(comma, 1) != ",") continue;
    const std::size_t next = skip_space(text, comma + 1);
    if (text.substr(next, 1) == "{") return ByteRange{brace + 1, next};
  }
  return {};
}

}  // namespace

std::string text_at(const InputFile& file, std::uint64_t begin, std::uint64_t count) {
  std::string text(begin < file.size() ? std::min(count, file.size() - begin) : 0, '\0');
  file.read(begin, text);
  return text;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

std::vector<ByteRange> cut(const InputFile& file, std::uint64_t begin, std::size_t piece_bytes) {
  // Bytes searched; longer than most records.
  constexpr std::size_t kLongest = std::size_t{1} << 18;
  constexpr std::size_t kLargest = std::size_t{1} << 26;  // maximum bytes of a piece in memory
  std::vector<ByteRange> pieces;
  for (std::uint64_t from = begin + piece_bytes; from < file.size(); from += piece_bytes) {
    std::optional<ByteRange> gap;
    for (std::size_t window = 1 << 12; !gap && window <= kLongest; window *= 8)
      gap = find_gap(text_at(file, from, window));
    if (from - begin > kLargest) return {};
    if (!gap) continue;
    pieces.push_back({begin, from + gap->begin});
    begin = from + gap->end;
    from = begin;
  }
  if (file.size() - begin > kLargest) return {};
  pieces.push_back({begin, file.size()});
  return pieces;
}

}  // namespace millrace::coco
