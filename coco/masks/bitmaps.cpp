// Conversion between run lengths (column-major) and bitmaps (row-major). Works on 64 columns at a
// time, with a row of them as the bits of one word, so that only changes within a column are
// visited individually.
#include <algorithm>
#include <bit>
#include <cstring>

#include "millrace/coco/masks/masks.h"
#include "millrace/coco/masks/run_writer.h"

namespace millrace::coco {
namespace {

static_assert(std::endian::native == std::endian::little, "byte i of a word is pixel i");

constexpr std::uint32_t kStripe = 64;                     // columns; bits of a word
constexpr std::uint64_t kOnes = 0x0101010101010101;       // 1 in each byte
constexpr std::uint64_t kSevens = 0x7f7f7f7f7f7f7f7f;     // all bits of each byte but the highest
constexpr std::uint64_t kBitOfByte = 0x8040201008040201;  // bit i in byte i

/// Sets bit i if byte i of the eight bytes is not zero.
std::uint64_t bits_of(std::uint64_t bytes) {
  const std::uint64_t top = (((bytes & kSevens) + kSevens) | bytes) & ~kSevens;
  return (top >> 7) * 0x0102040810204080 >> 56;
}

/// Sets byte i of the eight bytes to bit i (0 or 1).
std::uint64_t bytes_of(std::uint64_t bits) {
  return (((bits & 0xff) * kOnes & kBitOfByte) + kSevens) >> 7 & kOnes;
}

/// Sets bit i if pixel i of the up to 64 at `pixels` is not zero.
std::uint64_t row_of(const std::uint8_t* pixels, std::uint32_t columns) {
  std::uint64_t row = 0;
  for (std::uint32_t x = 0; x < columns; x += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, pixels + x, std::min(8U, columns - x));
    row |= bits_of(bytes) << x;
  }
  return row;
}

}  // namespace

Rle encode(const std::uint8_t* bitmap, std::uint32_t height, std::uint32_t width) {
  struct Change {
    std::uint32_t x, y;  // column x changes between inside and outside at row y
  };
  std::vector<Change> changes;                             // in row order
  std::vector<std::size_t> first(std::size_t{width} + 1);  // offset of each column in `rows`
  std::vector<std::uint64_t> above(width / kStripe + 1);
  for (std::uint32_t y = 0; y < height; ++y) {
    const std::uint8_t* pixels = bitmap + std::size_t{y} * width;
    for (std::uint32_t left = 0; left < width; left += kStripe) {
      const std::uint32_t columns = std::min(kStripe, width - left);
      if (y > 0 && std::memcmp(pixels + left, pixels + left - width, columns) == 0) continue;
      std::uint64_t& before = above[left / kStripe];
      const std::uint64_t row = row_of(pixels + left, columns);
      for (std::uint64_t changed = row ^ before; changed != 0; changed &= changed - 1) {
        const std::uint32_t x = left + static_cast<std::uint32_t>(std::countr_zero(changed));
        changes.push_back({x, y});
        ++first[x + 1];
      }
      before = row;
    }
  }
  for (std::size_t x = 0; x < width; ++x) first[x + 1] += first[x];
  std::vector<std::uint32_t> rows(changes.size());
  auto next = first;
  for (const auto& [x, y] : changes) rows[next[x]++] = y;

  RunWriter out(height, width, changes.size() + 2);
  for (std::uint32_t x = 0; x < width; ++x) {
    const std::uint32_t top = x * height;
    for (std::size_t i = first[x]; i < first[x + 1]; i += 2)
      out.add(top + rows[i], top + (i + 1 < first[x + 1] ? rows[i + 1] : height));
  }
  return std::move(out).finish();
}

void decode(const Rle& mask, std::uint8_t* bitmap) {
  const std::uint32_t height = mask.height, width = mask.width;
  // Bit x of word y is set if column x changes between inside and outside at row y. Runs are split
  // at columns.
  std::vector<std::uint64_t> changes(std::size_t{height} + 1);
  std::size_t run = 0;
  std::uint64_t position = 0;  // beginning of `run`
  for (std::uint32_t left = 0; left < width; left += kStripe) {
    const std::uint32_t columns = std::min(kStripe, width - left);
    const std::uint64_t stripe = std::uint64_t{left} * height;
    const std::uint64_t stripe_end = stripe + std::uint64_t{columns} * height;
    std::fill(changes.begin(), changes.end(), 0);
    for (; run < mask.counts.size() && position < stripe_end; ++run) {
      const std::uint64_t end = position + mask.counts[run];
      if (run % 2 == 1) {
        const std::uint64_t from = std::max(position, stripe) - stripe;
        const std::uint64_t to = std::min(end, stripe_end) - stripe;
        if (from < to) {
          const std::uint64_t first = from / height, last = (to - 1) / height;
          for (std::uint64_t x = first; x <= last; ++x) {
            const std::uint64_t bit = std::uint64_t{1} << x;
            changes[x == first ? from - first * height : 0] ^= bit;
            changes[x == last ? to - last * height : height] ^= bit;
          }
        }
      }
      if (end > stripe_end) break;  // the rest of the run is in the next stripes
      position = end;
    }
    std::uint64_t row = 0;
    for (std::uint32_t y = 0; y < height; ++y) {
      std::uint8_t* pixels = bitmap + std::size_t{y} * width + left;
      if (y > 0 && columns == kStripe && changes[y] == 0) {
        std::memcpy(pixels, pixels - width, kStripe);
        continue;
      }
      row ^= changes[y];
      for (std::uint32_t x = 0; x < columns; x += 8) {
        const std::uint64_t bytes = bytes_of(row >> x);
        std::memcpy(pixels + x, &bytes, std::min(8U, columns - x));
      }
    }
  }
}

}  // namespace millrace::coco
