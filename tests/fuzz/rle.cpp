// Run lengths: any text is decoded to a mask or rejected with an Error, and operations on run
// lengths match those on bitmaps.
#include "millrace/base/errors.h"
#include "millrace/coco/masks/masks.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {
namespace {

using coco::Rle;
using Bitmap = std::vector<std::uint8_t>;

Bitmap bitmap_of(const Rle& mask) {
  Bitmap bitmap(std::size_t{mask.height} * mask.width);
  coco::decode(mask, bitmap.data());
  return bitmap;
}

/// Returns the canonical run lengths of a bitmap with the height and width of `size`.
Rle canonical(const Bitmap& bitmap, const Rle& size) {
  return coco::encode(bitmap.data(), size.height, size.width);
}

template <typename F>
Rle combined(const Rle& a, const Rle& b, F pixel) {
  Bitmap left = bitmap_of(a);
  const Bitmap right = bitmap_of(b);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = pixel(left[i] != 0, right[i] != 0);
  return canonical(left, a);
}

void expect_laws_of_one(const Rle& mask) {
  MILLRACE_LAW(coco::decode_counts(coco::encode_counts(mask), mask.height, mask.width) == mask);
  const Bitmap bitmap = bitmap_of(mask);
  MILLRACE_LAW(bitmap_of(canonical(bitmap, mask)) == bitmap);
  std::uint64_t pixels = 0;
  const Box box = coco::bounding_box(mask);
  for (std::size_t i = 0; i < bitmap.size(); ++i) {
    if (!bitmap[i]) continue;
    ++pixels;
    const auto x = static_cast<float>(i % mask.width), y = static_cast<float>(i / mask.width);
    MILLRACE_LAW(x >= box.x1 && x + 1 <= box.x2 && y >= box.y1 && y + 1 <= box.y2);
  }
  MILLRACE_LAW(coco::area(mask) == pixels);
}

void expect_laws_of_two(const Rle& a, const Rle& b) {
  const Rle both[] = {a, b};
  const auto sides = {combined(a, b, [](bool p, bool q) { return p || q; }),
                      combined(a, b, [](bool p, bool q) { return p && q; })};
  const Rle &all = sides.begin()[0], &shared = sides.begin()[1];
  MILLRACE_LAW(canonical(bitmap_of(coco::merge(both)), a) == all);
  MILLRACE_LAW(canonical(bitmap_of(coco::intersect(both)), a) == shared);
  MILLRACE_LAW(coco::difference(a, b) == combined(a, b, [](bool p, bool q) { return p && !q; }));
  const std::uint8_t crowd[] = {0};
  const double iou = coco::mask_iou({&a, 1}, {&b, 1}, crowd)[0];
  const auto inside = static_cast<double>(coco::area(shared));
  MILLRACE_LAW(iou == (inside == 0 ? 0 : inside / static_cast<double>(coco::area(all))));
}

void expect_laws_of_window(const Rle& mask, std::int64_t x, std::int64_t y, std::uint32_t height,
                           std::uint32_t width) {
  const Bitmap before = bitmap_of(mask);
  Bitmap after(std::size_t{height} * width, 0);
  for (std::int64_t r = 0; r < height; ++r)
    for (std::int64_t c = 0; c < width; ++c) {
      if (r + y < 0 || r + y >= mask.height || c + x < 0 || c + x >= mask.width) continue;
      after[static_cast<std::size_t>(r * width + c)] =
          before[static_cast<std::size_t>((r + y) * mask.width + c + x)];
    }
  MILLRACE_LAW(coco::window(mask, x, y, height, width) ==
               coco::encode(after.data(), height, width));
}

}  // namespace

void check(Input input) {
  const std::uint32_t height = input.take<std::uint8_t>(), width = input.take<std::uint8_t>();
  const auto x = input.take<std::int8_t>(), y = input.take<std::int8_t>();
  const auto rows = input.take<std::uint8_t>(), columns = input.take<std::uint8_t>();
  const std::string_view text = input.rest();
  try {  // sizes that are too large for bitmaps
    coco::decode_counts(text, height << 16 | width, width << 8 | height);
  } catch (const Error&) {
  }
  // a space is invalid in a mask, so it separates two masks
  const auto cut = std::min(text.find(' '), text.size());
  try {
    const Rle a = coco::decode_counts(text.substr(0, cut), height, width);
    expect_laws_of_one(a);
    expect_laws_of_window(a, x, y, rows, columns);
    if (cut == text.size()) return;
    expect_laws_of_two(a, coco::decode_counts(text.substr(cut + 1), height, width));
  } catch (const Error& error) {
    MILLRACE_LAW(*error.what() != '\0');
  }
}

}  // namespace millrace::fuzz
