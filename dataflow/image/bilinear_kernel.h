// The two loops of a bilinear resize, which are implemented for several instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace {

/// The plan for resizing a row to the target's width, in windows of neighbouring values that are
/// computed from neighbouring bytes. Value v of window w is the sum of two bytes of the row times
/// two weights of 11 bits. All arrays except `starts`, and the output rows, are aligned to 64
/// bytes.
struct WidePlan {
  std::size_t windows = 0;
  const std::int32_t* starts = nullptr;  // (windows): first byte in the row of each window
  /// (windows, values, 4): for each value the offsets of its two bytes in the window, each followed
  /// by 0x80, which selects no byte.
  const std::uint8_t* picks = nullptr;
  const std::int16_t* weights = nullptr;  // (windows, values, 2)
};

/// Consists of plain pointers. A file compiled for newer processors must include no library, since
/// all files share its inline functions.
struct BilinearKernel {
  const char* name;
  std::int32_t window;       // bytes of a row that it reads per window
  std::int32_t values;       // values that it computes per window
  std::int32_t together;     // windows that it processes at once; plans have a multiple of it
  std::int32_t reads_after;  // bytes that it may read after the end of a row
  /// Resizes a row to the target's width, in sixteenths of 11 bits: 0 .. 32640.
  void (*widen)(const std::uint8_t* row, const WidePlan& plan, std::int16_t* out);
  /// Computes a row of the target from two widened rows with weights of 11 bits.
  void (*blend)(const std::int16_t* upper, const std::int16_t* lower, const std::int16_t* weights,
                std::uint8_t* out, std::size_t size);
};

}  // namespace millrace
