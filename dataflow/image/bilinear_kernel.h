// The two loops of a bilinear resize, which are written for several kinds of processors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// How a row is widened: in windows of neighbouring values, each made of bytes near each
/// other. Value v of window w is the sum of two bytes of the row times two weights of 11 bits.
/// Arrays, but for `starts`, and the rows that are made begin at a multiple of 64 bytes.
struct WidePlan {
  std::size_t windows = 0;
  const std::int32_t* starts = nullptr;  // (windows): the byte of the row where each begins
  /// (windows, values, 4): of each value the places of its two bytes in the window, each followed
  /// by 0x80, which picks none.
  const std::uint8_t* picks = nullptr;
  const std::int16_t* weights = nullptr;  // (windows, values, 2)
};

/// Consists of plain pointers: a file that is compiled for newer processors includes no library,
/// since all files share its inline functions.
struct BilinearKernel {
  const char* name;
  std::int32_t window;       // bytes that it reads of a row at a time
  std::int32_t values;       // which it makes of them
  std::int32_t together;     // windows that it takes at a time: plans have a multiple
  std::int32_t reads_after;  // bytes after the end of a row
  /// A row of the image at the target's width, in sixteenths of 11 bits: 0 .. 32640.
  void (*widen)(const std::uint8_t* row, const WidePlan& plan, std::int16_t* out);
  /// A row of the target from two widened ones, times weights of 11 bits.
  void (*blend)(const std::int16_t* upper, const std::int16_t* lower, const std::int16_t* weights,
                std::uint8_t* out, std::size_t size);
};

}  // namespace millrace
