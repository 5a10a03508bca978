// A reader for each format: see ReadPicture.
#pragma once

#include <csetjmp>

#include "millrace/dataflow/image_readers/image_readers.h"

namespace millrace {

ReadPicture read_jpeg, read_png, read_tiff, read_webp;

/// Calls `work`, which may leave by longjmp to `place` and must hold nothing that has a destructor
/// then. Returns whether it came to its end.
template <class Work>
bool reaches_its_end(std::jmp_buf& place, const Work& work) {
  if (setjmp(place) != 0) return false;
  work();
  return true;
}

}  // namespace millrace
