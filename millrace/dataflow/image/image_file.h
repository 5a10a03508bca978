// Image files to pixels.
#pragma once

#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/base/errors.h"

namespace millrace {

/// A picture has another size than its annotations say.
struct WrongSize : DataError {
  using DataError::DataError;
};

/// The bytes of an image file. Throws DataError naming it, also where there are more than can be
/// decoded.
std::string read_image_file(const std::string& file);

/// Throws DataError where an image file of so many bytes cannot be decoded.
void check_image_bytes(std::uint64_t bytes, const std::string& file);

/// (H, W, 3) 8-bit RGB from a file's bytes: TurboJPEG for JPEGs, OpenCV for anything else.
///
/// `annotated` is the size that the picture must have. Where the file's own size is that, its EXIF
/// orientation is ignored; where it is that only when turned upright, it is turned. Without
/// `annotated` it is turned as EXIF says. `strict` refuses JPEGs that the decoder had to guess at:
/// truncated ones and those with damaged data; what is merely odd, such as stray bytes between its
/// parts, is taken. `enough` is the size that will do: a JPEG is decoded at a half, a quarter or an
/// eighth of its size where that is not less and a whole number of pixels.
///
/// Throws DataError naming `file`, WrongSize for the size alone; also where its head asks for more
/// pixels than the file can hold or than fit into memory. Any thread; each keeps its own
/// decompressor.
cv::Mat decode_rgb(std::string_view bytes, const std::string& file,
                   std::optional<cv::Size> annotated = {}, bool strict = true,
                   cv::Size enough = {});

/// Throws as `decode_rgb` what can be told without the pixels, from the beginning of a file or all
/// of it. Returns the EXIF orientation that `decode_rgb` turns it by; nothing where only decoding
/// tells: of all but JPEGs. Any thread.
std::optional<int> check_head(std::string_view bytes, const std::string& file, cv::Size annotated);

}  // namespace millrace
