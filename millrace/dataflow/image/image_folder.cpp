#include "millrace/dataflow/image/image_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace millrace {
namespace {

namespace fs = std::filesystem;

bool looks_like_an_image(const fs::path& file) {
  constexpr std::array<std::string_view, 8> kKnown = {".jpg", ".jpeg", ".png",  ".bmp",
                                                      ".tif", ".tiff", ".webp", ".ppm"};
  auto extension = file.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return std::tolower(c); });
  return std::ranges::count(kKnown, extension) > 0;
}

}  // namespace

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file() && looks_like_an_image(entry.path())) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace millrace
