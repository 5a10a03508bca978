// Boxes as corners: x1 y1 x2 y2 in pixels, x to the right, y down.
#pragma once

#include <algorithm>

namespace millrace {

struct Box {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;

  float width() const { return x2 - x1; }
  float height() const { return y2 - y1; }
  float area() const { return width() * height(); }
  bool has_area() const { return x2 > x1 && y2 > y1; }
  friend bool operator==(const Box&, const Box&) = default;
};

}  // namespace millrace
