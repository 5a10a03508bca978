// Image files that nobody has annotated, as a data set that the flow of evaluation can read.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "millrace/coco/data/records.h"

namespace millrace::cli {

/// The image files among `paths`: files as they are, folders searched (not below) by extension, by
/// name. Throws Error for a path that does not exist, or where there is no image at all.
std::vector<std::filesystem::path> find_images(std::span<const std::filesystem::path> paths);

/// A data set of these files with ids 1, 2, ... and without objects; `file_name`s are absolute,
/// `source` names it in messages. What cannot be decoded is told to `on_bad` with a sentence that
/// names it, and left out.
std::shared_ptr<const coco::Dataset> as_dataset(
    std::span<const std::filesystem::path> files, coco::Records categories,
    const std::string& source,
    const std::function<void(const std::filesystem::path&, const std::string&)>& on_bad);

}  // namespace millrace::cli
