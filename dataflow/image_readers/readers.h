// One reader per format; see ReadPicture.
#pragma once

#include <csetjmp>

#include "millrace/dataflow/image_readers/image_readers.h"

namespace millrace {

ReadPicture read_jpeg, read_png, read_tiff, read_webp;

/// Calls `work`, which may exit by longjmp to `place` and then must hold no object with a
/// destructor. Returns true if it returned normally.
template <class Work>
bool reaches_its_end(std::jmp_buf& place, const Work& work) {
  if (setjmp(place) != 0) return false;
  work();
  return true;
}

}  // namespace millrace
