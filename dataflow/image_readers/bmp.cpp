// A reader of our own: Debian has no library for BMP alone, and the format is a head and rows.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

#include "millrace/dataflow/image_readers/readers.h"

namespace millrace {
namespace {

using Colour = std::array<std::uint8_t, 3>;  // red, green, blue

constexpr std::uint32_t kPlain = 0, kRunsOf8 = 1, kRunsOf4 = 2, kMasks = 3;  // `compression`

/// The file's bytes, none beyond its end.
class BmpBytes {
 public:
  explicit BmpBytes(std::string_view bytes) : bytes_(bytes) {}

  /// `count` bytes from `at` on.
  const std::uint8_t* from(std::size_t at, std::size_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at)
      throw std::runtime_error("broken BMP: the file ends too early");
    return reinterpret_cast<const std::uint8_t*>(bytes_.data()) + at;
  }
  /// A number of `count` bytes.
  std::uint32_t number(std::size_t at, std::size_t count) const {
    const auto* bytes = from(at, count);
    std::uint32_t value = 0;
    while (count > 0) value = value << 8 | bytes[--count];
    return value;
  }

 private:
  std::string_view bytes_;
};

struct BmpHead {
  std::size_t width = 0, height = 0;  // pixels
  bool top_first = false;
  std::size_t bits = 0;        // of a pixel
  std::size_t green_bits = 5;  // of a pixel of 16 bits
  std::uint32_t compression = kPlain;
  std::size_t pixels_at = 0;
  std::array<Colour, 256> palette = {};
};

bool is_known(const BmpHead& head) {
  switch (head.bits) {
    case 1:
    case 24:
      return head.compression == kPlain;
    case 4:
      return head.compression == kPlain || head.compression == kRunsOf4;
    case 8:
      return head.compression == kPlain || head.compression == kRunsOf8;
    case 16:
    case 32:
      return head.compression == kPlain || head.compression == kMasks;
    default:
      return false;
  }
}

void read_palette(const BmpBytes& file, std::size_t at, std::size_t colours, std::size_t bytes,
                  BmpHead& head) {
  if (colours > head.palette.size())
    throw std::runtime_error("broken BMP: its palette has more than 256 colours");
  const auto* entry = file.from(at, colours * bytes);
  for (std::size_t i = 0; i < colours; ++i, entry += bytes)
    head.palette[i] = {entry[2], entry[1], entry[0]};
}

BmpHead read_head(const BmpBytes& file) {
  BmpHead head;
  head.pixels_at = file.number(10, 4);
  const std::size_t size = file.number(14, 4), after = 14 + size;
  const bool is_old = size == 12;
  if (!is_old && size < 36) throw std::runtime_error("broken BMP: its head has an unknown size");
  if (is_old) {
    head.width = file.number(18, 2);
    head.height = file.number(20, 2);
    head.bits = file.number(24, 2);
  } else {
    const auto width = static_cast<std::int32_t>(file.number(18, 4)),
               height = static_cast<std::int32_t>(file.number(22, 4));
    head.width = static_cast<std::size_t>(std::max(width, 0));
    head.height = static_cast<std::size_t>(std::abs(std::int64_t{height}));
    head.top_first = height < 0;
    head.bits = file.number(28, 2);
    head.compression = file.number(30, 4);
  }
  if (head.width < 1 || head.height < 1 || head.height > INT32_MAX)
    throw std::runtime_error("broken BMP: it has no picture's size");
  if (!is_known(head)) throw std::runtime_error("a BMP of a kind that is not read");

  const auto colours = std::size_t{1} << std::min<std::size_t>(head.bits, 8);
  if (head.bits <= 8 && is_old) read_palette(file, after, colours, 3, head);
  if (head.bits <= 8 && !is_old) {
    const std::size_t used = file.number(46, 4);
    read_palette(file, after, used > 0 ? used : colours, 4, head);
  }
  if (head.bits == 16 && head.compression == kMasks) {
    constexpr std::size_t kFirst = 14 + 40;  // behind a head of the usual size, within a longer one
    const std::array masks = {file.number(kFirst, 4), file.number(kFirst + 4, 4),
                              file.number(kFirst + 8, 4)};
    if (masks == std::array{0xF800U, 0x7E0U, 0x1FU}) {
      head.green_bits = 6;
    } else if (masks != std::array{0x7C00U, 0x3E0U, 0x1FU}) {
      throw std::runtime_error(
          "a BMP of a kind that is not read: 16 bits divided in another way "
          "than 5, 5, 5 or 5, 6, 5");
    }
  }
  return head;
}

/// The colour of pixel `x` of a row that holds pixels one after another.
Colour pixel(const BmpHead& head, const std::uint8_t* row, std::size_t x) {
  switch (head.bits) {
    case 1:
      return head.palette[row[x / 8] >> (7 - x % 8) & 1];
    case 4:
      return head.palette[row[x / 2] >> (x % 2 == 0 ? 4 : 0) & 15];
    case 8:
      return head.palette[row[x]];
    case 16: {
      const unsigned value = row[2 * x] | unsigned{row[2 * x + 1]} << 8;
      const auto above = 5 + head.green_bits;
      const auto green = value >> 5 & ((1U << head.green_bits) - 1);
      return {static_cast<std::uint8_t>((value >> above & 31) << 3),
              static_cast<std::uint8_t>(green << (8 - head.green_bits)),
              static_cast<std::uint8_t>((value & 31) << 3)};
    }
    default: {
      const auto* bytes = row + x * head.bits / 8;
      return {bytes[2], bytes[1], bytes[0]};
    }
  }
}

/// The picture's rows, the file's first one first.
class Rows {
 public:
  Rows(const BmpHead& head, std::uint8_t* pixels) : head_(head), pixels_(pixels) {}

  void put(std::size_t y, std::size_t x, Colour colour) const {
    const auto row = head_.top_first ? y : head_.height - 1 - y;
    std::ranges::copy(colour, pixels_ + (row * head_.width + x) * 3);
  }

 private:
  const BmpHead& head_;
  std::uint8_t* pixels_;
};

void read_rows(const BmpBytes& file, const BmpHead& head, const Rows& rows) {
  const auto used = (head.width * head.bits + 7) / 8, stride = (used + 3) / 4 * 4;
  for (std::size_t y = 0; y < head.height; ++y) {
    const auto* row = file.from(head.pixels_at + y * stride, used);
    for (std::size_t x = 0; x < head.width; ++x) rows.put(y, x, pixel(head, row, x));
  }
}

/// Pairs of bytes: how many pixels and which (of four bits: two by turns); or 0 and what else.
void read_runs(const BmpBytes& file, const BmpHead& head, const Rows& rows) {
  constexpr unsigned kEndOfRow = 0, kEnd = 1, kJump = 2;  // else: so many pixels, one by one
  for (std::size_t y = 0; y < head.height; ++y)
    for (std::size_t x = 0; x < head.width; ++x) rows.put(y, x, head.palette[0]);
  const bool of_4 = head.compression == kRunsOf4;
  std::size_t y = 0, x = 0;
  const auto need = [&](std::size_t count) {
    if (y >= head.height || count > head.width - x)
      throw std::runtime_error("broken BMP: a run of pixels leaves its row");
  };
  for (auto at = head.pixels_at; y + 1 < head.height || x < head.width;) {
    const std::size_t count = file.number(at, 1), what = file.number(at + 1, 1);
    at += 2;
    if (count > 0) {
      need(count);
      for (std::size_t i = 0; i < count; ++i)
        rows.put(y, x++, head.palette[!of_4 ? what : i % 2 == 0 ? what >> 4 : what & 15]);
    } else if (what == kEndOfRow) {
      if (++y >= head.height) return;
      x = 0;
    } else if (what == kEnd) {
      return;
    } else if (what == kJump) {
      x += file.number(at, 1);
      y += file.number(at + 1, 1);
      at += 2;
      if (x > head.width || y >= head.height)
        throw std::runtime_error("broken BMP: a jump leaves the picture");
    } else {
      need(what);
      const auto bytes = of_4 ? (what + 1) / 2 : what;
      const auto* values = file.from(at, bytes);
      for (std::size_t i = 0; i < what; ++i) rows.put(y, x++, pixel(head, values, i));
      at += (bytes + 1) / 2 * 2;
    }
  }
}

}  // namespace

void read_bmp(std::string_view bytes, const PictureRoom& room) {
  const BmpBytes file(bytes);
  const auto head = read_head(file);
  const Rows rows(head, room(static_cast<int>(head.width), static_cast<int>(head.height)));
  if (head.compression == kRunsOf8 || head.compression == kRunsOf4)
    read_runs(file, head, rows);
  else
    read_rows(file, head, rows);
}

}  // namespace millrace
