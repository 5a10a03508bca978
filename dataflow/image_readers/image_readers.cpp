#include "millrace/dataflow/image_readers/image_readers.h"

#include <array>
#include <stdexcept>

#include "millrace/dataflow/image_readers/readers.h"

namespace {

using namespace millrace;

struct Format {
  std::string_view starts_with, and_at_8;
  ReadPicture* read;
};

using namespace std::string_view_literals;
constexpr std::array kFormats = {Format{"\x89PNG\r\n\x1A\n"sv, {}, read_png},
                                 Format{"\xFF\xD8\xFF"sv, {}, read_jpeg},
                                 Format{"RIFF"sv, "WEBP"sv, read_webp},
                                 Format{"II*\0"sv, {}, read_tiff},
                                 Format{"MM\0*"sv, {}, read_tiff},
                                 Format{"II+\0"sv, {}, read_tiff},  // BigTIFF, for more than 4 GiB
                                 Format{"MM\0+"sv, {}, read_tiff}};

}  // namespace

extern "C" [[gnu::visibility("default")]] void millrace_read_picture(std::string_view bytes,
                                                                     const PictureRoom& room) {
  for (const auto& [start, at_8, read] : kFormats)
    if (bytes.starts_with(start) && (at_8.empty() || bytes.substr(0, 12).ends_with(at_8)))
      return read(bytes, room);
  throw std::runtime_error("unknown image format");
}
