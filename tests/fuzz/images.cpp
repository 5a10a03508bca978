// Image files other than JPEG: any bytes either fill the allocated buffer exactly once or are
// rejected with an error.
#include <stdexcept>
#include <vector>

#include "millrace/dataflow/image_readers/image_readers.h"
#include "tests/fuzz/laws.h"

extern "C" millrace::ReadPicture millrace_read_picture;

namespace millrace::fuzz {

void check(Input input) {
  constexpr std::int64_t kMostPixels = 1 << 22;  // check_image_head rejects larger images
  std::vector<std::uint8_t> pixels;
  try {
    millrace_read_picture(input.rest(), [&](int width, int height) {
      MILLRACE_LAW(width > 0 && height > 0 && pixels.empty());
      if (std::int64_t{width} * height > kMostPixels) throw std::runtime_error("too large");
      pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
      return pixels.data();
    });
    MILLRACE_LAW(!pixels.empty());
  } catch (const std::runtime_error& error) {
    MILLRACE_LAW(*error.what() != '\0');
  }
}

}  // namespace millrace::fuzz
