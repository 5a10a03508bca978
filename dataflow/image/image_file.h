// Image files, to pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// The size of a picture differs from its annotations.
struct WrongSize : DataError {
  using DataError::DataError;
};

/// The image files of a folder (not below it), by their extensions, sorted by name.
std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder);

/// The picture as it stood before the camera. REQUIRES: an EXIF orientation of 1 .. 8.
cv::Mat upright(const cv::Mat& image, int orientation);

/// The bytes of an image file. Throws DataError naming it, also if it is too long to be decoded.
std::string read_image_file(const std::string& file);
/// Throws DataError if an image file of this length cannot be decoded.
void check_image_bytes(std::uint64_t bytes, const std::string& file);

/// (H, W, 3) 8-bit RGB from a file's bytes: JPEG by TurboJPEG; PNG, WebP and TIFF by readers
/// that are opened on first use. A file of another format is refused by its name.
///
/// `annotated` is the size that the picture must have: it is turned by its EXIF orientation only if
/// that gives this size, without `annotated` always. `strict` refuses JPEGs that end too early;
/// other damage is decoded as Pillow and OpenCV do. `enough` is the size that will do: a JPEG is
/// decoded at a half, a quarter or an eighth of its size if that is not less and a whole number of
/// pixels.
///
/// Throws DataError naming `file`, WrongSize for the size alone; also if its head asks for more
/// than `max_pixels` (0 = unlimited), than the file can hold or than fit into memory. Any thread.
cv::Mat decode_rgb(std::string_view bytes, const std::string& file,
                   std::optional<cv::Size> annotated = {}, bool strict = true, cv::Size enough = {},
                   std::int64_t max_pixels = kMaxPixels);

/// The size that `decode_rgb` gives a JPEG without `annotated`, mostly from its head alone. nullopt
/// for other files, of which `annotated` changes no pixel. Throws as `decode_rgb`. Any thread.
std::optional<cv::Size> upright_size(std::string_view bytes, const std::string& file);

/// Checks the beginning of a file as `decode_rgb` does. Returns the EXIF orientation by which it is
/// turned; nullopt for other files than JPEGs. Any thread.
std::optional<int> check_head(std::string_view bytes, const std::string& file, cv::Size annotated,
                              std::int64_t max_pixels = kMaxPixels);

}  // namespace millrace
