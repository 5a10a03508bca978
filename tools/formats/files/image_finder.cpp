#include "millrace/tools/formats/files/image_finder.h"

#include <algorithm>

namespace millrace::formats {
namespace {

/// Returns the number of common folder names of two paths, then the number of equal parts at their
/// beginning.
std::pair<std::size_t, std::size_t> likeness(const RelativePath& one, const RelativePath& other) {
  const auto a = parts_of(one), b = parts_of(other);
  const auto same = std::ranges::mismatch(a, b).in1 - a.begin();
  std::size_t shared = 0;
  for (std::size_t i = 0; i + 1 < a.size(); ++i) shared += std::ranges::count(b, a[i]) > 0 ? 1 : 0;
  return {shared, static_cast<std::size_t>(same)};
}

}  // namespace

ImageFinder::ImageFinder(const Listing& folder, const std::set<std::string>& mask_folders) {
  for (auto& image : folder.images_below("")) {
    const auto parts = parts_of(folder_of(image));
    if (std::ranges::any_of(
            parts, [&](const auto& part) { return mask_folders.contains(lower_case(part)); }))
      continue;
    by_stem_[stem_of(image)].push_back(image);
    by_name_[name_of(image)].push_back(image);
    images_.push_back(std::move(image));
  }
}

std::optional<RelativePath> ImageFinder::nearest(const std::vector<RelativePath>& candidates,
                                                 const RelativePath& label) const {
  for (const auto& one : candidates)
    if (folder_of(one) == folder_of(label)) return one;
  return *std::ranges::max_element(candidates, {},
                                   [&](const RelativePath& one) { return likeness(one, label); });
}

std::optional<RelativePath> ImageFinder::by_stem(const std::string& stem,
                                                 const RelativePath& label) const {
  const auto found = by_stem_.find(stem);
  if (found == by_stem_.end()) return {};
  return nearest(found->second, label);
}

std::optional<RelativePath> ImageFinder::by_name(std::string_view name,
                                                 const RelativePath& label) const {
  std::string path(name);
  std::ranges::replace(path, '\\', '/');
  const auto found = by_name_.find(name_of(path));
  if (found == by_name_.end()) return {};
  // Finds the paths with the most parts at the end in common with the label's path.
  std::vector<RelativePath> best;
  std::size_t most = 0;
  const auto wanted = parts_of(path);
  for (const auto& place : found->second) {
    const auto parts = parts_of(place);
    const auto same = static_cast<std::size_t>(
        std::mismatch(wanted.rbegin(), wanted.rend(), parts.rbegin(), parts.rend()).first -
        wanted.rbegin());
    if (same > most) best.clear();
    if (same >= most) best.push_back(place);
    most = std::max(most, same);
  }
  return nearest(best, label);
}

std::vector<RelativePath> ImageFinder::others_beside(const std::set<RelativePath>& some) const {
  std::set<RelativePath> folders;
  for (const auto& image : some) folders.insert(folder_of(image));
  std::vector<RelativePath> others;
  for (const auto& image : images_)
    if (folders.contains(folder_of(image)) && !some.contains(image)) others.push_back(image);
  return others;
}

}  // namespace millrace::formats
