// COCO's text encoding of run lengths: differences in groups of five bits, as characters 48 to 111.
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/coco/masks/mask_extent.h"
#include "millrace/coco/masks/masks.h"

namespace millrace::coco {
namespace {

constexpr char kZero = '0';
constexpr int kMore = 0x20, kSign = 0x10, kBits = 0x1f;
constexpr int kMaxGroups = 7;  // 35 bits suffice for any difference of two 32-bit counts

[[noreturn]] void fail(std::size_t byte, const std::string& why) {
  throw Error(fmt::format("counts: byte {}: {}", byte, why));
}

/// Reads the signed number at `at` and moves `at` past it.
std::int64_t number_at(std::string_view text, std::size_t& at) {
  std::int64_t value = 0;
  for (int group = 0;; ++group) {
    if (at == text.size()) fail(at, "the text ends inside a number");
    if (group == kMaxGroups) fail(at, "a number is too long");
    const int bits = static_cast<unsigned char>(text[at]) - kZero;
    if (bits < 0 || bits > (kMore | kBits)) fail(at, "invalid character; expected '0' to 'o'");
    ++at;
    value |= static_cast<std::int64_t>(bits & kBits) << (5 * group);
    if (bits & kMore) continue;
    if (bits & kSign) value -= std::int64_t{1} << (5 * (group + 1));
    return value;
  }
}

/// Calls `outside` and `inside` alternately for the runs of a text. Throws like `decode_counts`.
template <typename F, typename G>
void each_run(std::string_view text, std::uint32_t height, std::uint32_t width, F outside,
              G inside) {
  const std::uint64_t pixels = std::uint64_t{height} * width;
  if (pixels > UINT32_MAX)
    throw Error(fmt::format("counts: a mask of {} x {} is too large", height, width));
  std::size_t at = 0, index = 0;
  std::uint64_t sum = 0;
  std::int64_t last = 0, before_last = 0;
  const auto next = [&] {
    const std::size_t begin = at;
    const int bits = static_cast<unsigned char>(text[at]) - kZero;
    std::int64_t run = 0;
    if (bits >= 0 && bits <= kBits) {  // most numbers have one group
      run = (bits ^ kSign) - kSign;
      ++at;
    } else {
      run = number_at(text, at);
    }
    if (index++ > 2) run += before_last;
    before_last = last, last = run;
    if (run < 0) fail(begin, "negative run length");
    sum += static_cast<std::uint64_t>(run);
    if (sum > pixels)
      fail(begin, fmt::format("the runs exceed the mask of {} x {} pixels", height, width));
    return static_cast<std::uint32_t>(run);
  };
  while (at < text.size()) {
    outside(next());
    if (at == text.size()) break;
    inside(next());
  }
  if (sum != pixels)
    throw Error(fmt::format("counts: the runs add up to {} pixels, not {} x {} = {}", sum, height,
                            width, pixels));
}

}  // namespace

std::string encode_counts(const Rle& mask) {
  std::string text(mask.counts.size() * kMaxGroups, '\0');
  char* at = text.data();
  for (std::size_t i = 0; i < mask.counts.size(); ++i) {
    std::int64_t value = mask.counts[i];
    if (i > 2) value -= mask.counts[i - 2];  // the first counts are stored without a difference
    for (bool more = true; more;) {
      int bits = static_cast<int>(value & kBits);
      value >>= 5;
      more = bits & kSign ? value != -1 : value != 0;
      if (more) bits |= kMore;
      *at++ = static_cast<char>(bits + kZero);
    }
  }
  text.resize(static_cast<std::size_t>(at - text.data()));
  return text;
}

Rle decode_counts(std::string_view counts, std::uint32_t height, std::uint32_t width) {
  Rle mask;
  decode_counts(counts, height, width, mask);
  return mask;
}

void decode_counts(std::string_view counts, std::uint32_t height, std::uint32_t width, Rle& mask) {
  mask.height = height, mask.width = width;
  mask.counts.resize(counts.size());  // each count takes at least one byte
  std::uint32_t* end = mask.counts.data();
  const auto put = [&](std::uint32_t run) { *end++ = run; };
  each_run(counts, height, width, put, put);
  mask.counts.resize(static_cast<std::size_t>(end - mask.counts.data()));
}

MaskExtent extent_of(std::string_view counts, std::uint32_t height, std::uint32_t width) {
  ExtentMeter meter(height, width);
  each_run(
      counts, height, width, [&](std::uint32_t run) { meter.skip(run); },
      [&](std::uint32_t run) { meter.inside(run); });
  return meter.finish();
}

}  // namespace millrace::coco
