// Reads a long list of records in a JSON file in pieces, on all threads of the caller's arena.
#pragma once

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/data/json.h"

namespace millrace::coco {

struct ByteRange {
  std::uint64_t begin, end;
};

/// Cuts the file from `begin` on between records, about every `piece_bytes`. The boundaries of
/// records are a guess ("}, {"). Empty if a piece would be too large.
std::vector<ByteRange> cut(const InputFile& file, std::uint64_t begin, std::size_t piece_bytes);

/// Returns up to `count` bytes from `begin` on.
std::string text_at(const InputFile& file, std::uint64_t begin, std::uint64_t count);

/// Returns the position of the next character that is not white space.
std::size_t skip_space(std::string_view text, std::size_t at);

/// Reads pieces one after another, reusing its memory. A `Part` stores the records and has
/// `clear()` and `read(JsonReader&)`, which may throw Wrong.
template <typename Part>
class ListPiece {
 public:
  /// With `tolerant`, reading continues after a wrong record; otherwise the piece is then not
  /// whole.
  ListPiece(const InputFile& file, std::string_view section, Part new_part, bool tolerant)
      : part(std::move(new_part)), file_(file), section_(section), tolerant_(tolerant) {}

  void read(ByteRange range) {
    part.clear();
    last.reset();
    faults.clear();
    records = 0;
    try {
      const std::size_t count = range.end - range.begin;
      bytes_.resize(count + JsonReader::kPadding);
      file_.read(range.begin, std::span(bytes_).first(count));
      std::ranges::fill(std::span(bytes_).subspan(count), '\0');
      JsonReader text(bytes_.data(), bytes_.data() + count);
      if (tolerant_)
        text.tolerate([&](RecordFault fault) {
          fault.byte += range.begin;
          faults.push_back(std::move(fault));
        });
      if (text.next() != ']') records = text.records(section_, [&] { part.read(text); });
      if (text.take(']')) last = range.begin + text.offset(text.at()) - 1;
      whole = last || text.is_at_end();
    } catch (const Error&) {  // reported when the file is read in order
      whole = false;
    }
  }

  Part part;
  bool whole = false;                 // true if the piece could be read
  std::optional<std::uint64_t> last;  // byte of the ']' if the list ends in this piece
  std::size_t records = 0;
  std::vector<RecordFault> faults;  // indices count from the first record of the piece

 private:
  const InputFile& file_;
  const std::string_view section_;
  const bool tolerant_;
  std::vector<char> bytes_;
};

/// Reads the list `section` whose '[' is at byte `first`. Each piece is read into its own `Part`;
/// `append(Part&, pieces)` is called for the parts in file order, one at a time. Returns the byte
/// of the closing ']'; nullopt if a guessed boundary or a record is wrong. Guesses are verified:
/// only a piece that contains whole records proves that the next piece begins at a record. With
/// `faults`, unreadable records are left out and reported there.
template <typename Part, typename Append>
std::optional<std::uint64_t> read_list(const InputFile& file, std::string_view section,
                                       std::uint64_t first, std::size_t piece_bytes,
                                       const Part& empty, Append append,
                                       std::vector<RecordFault>* faults = nullptr) {
  const auto ranges = cut(file, first + 1, piece_bytes);
  if (ranges.empty()) return {};
  // One slot per token; the oldest tokens release their slots first.
  const auto tokens = static_cast<std::size_t>(tbb::this_task_arena::max_concurrency()) + 1;
  std::deque<ListPiece<Part>> slots;
  for (std::size_t i = 0; i < tokens; ++i)
    slots.emplace_back(file, section, empty, faults != nullptr);
  std::optional<std::uint64_t> last;
  std::atomic<bool> ended = false;
  std::size_t next = 0, records = 0;
  const auto issue = [&](tbb::flow_control& flow) {
    if (ended || next == ranges.size()) flow.stop();
    return next++;
  };
  const auto read = [&](std::size_t i) {
    slots[i % tokens].read(ranges[i]);
    return i;
  };
  const auto take = [&](std::size_t i) {
    if (ended) return;
    auto& piece = slots[i % tokens];
    ended = !piece.whole || piece.last;
    last = piece.last;
    append(piece.part, ranges.size());
    for (RecordFault& fault : piece.faults) {
      fault.index += records;
      faults->push_back(std::move(fault));
    }
    records += piece.records;
  };
  using tbb::filter_mode;
  tbb::parallel_pipeline(
      tokens, tbb::make_filter<void, std::size_t>(filter_mode::serial_in_order, issue) &
                  tbb::make_filter<std::size_t, std::size_t>(filter_mode::parallel, read) &
                  tbb::make_filter<std::size_t, void>(filter_mode::serial_in_order, take));
  return last;
}

}  // namespace millrace::coco
