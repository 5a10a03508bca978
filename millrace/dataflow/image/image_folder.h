// Folders of image files.
#pragma once

#include <filesystem>
#include <vector>

namespace millrace {

/// The image files of a folder (not below it), told by their extensions, sorted by name.
std::vector<std::filesystem::path> images_in(const std::filesystem::path& folder);

}  // namespace millrace
