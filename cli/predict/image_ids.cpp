#include "millrace/cli/predict/image_ids.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/cli/predict/photo_results.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Returns the number of equal trailing components of two paths.
std::size_t shared_parts(const fs::path& a, const fs::path& b) {
  const std::vector<fs::path> left(a.begin(), a.end()), right(b.begin(), b.end());
  const auto [end, other] = std::mismatch(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  return static_cast<std::size_t>(end - left.rbegin());
}

void refuse(const FailedPhotos& files, std::size_t all, const std::string& what) {
  if (files.count > 0) throw Error(files.text(all, "image", what));
}

}  // namespace

std::vector<std::int64_t> image_ids(const coco::Dataset& truth,
                                    const std::vector<fs::path>& files) {
  std::multimap<std::string, const coco::Image*> by_name;
  for (const auto& image : truth.images)
    by_name.emplace(fs::path(truth.text(image.file_name)).filename().string(), &image);
  std::vector<std::int64_t> ids;
  std::map<std::int64_t, fs::path> taken;
  FailedPhotos unknown, ambiguous, repeated;
  for (const auto& file : files) {
    const auto path = fs::absolute(file).lexically_normal();
    const coco::Image* best = nullptr;
    std::size_t most = 0, equal = 0;
    const auto [first, last] = by_name.equal_range(path.filename().string());
    for (auto at = first; at != last; ++at) {
      const auto shared = shared_parts(path, fs::path(truth.text(at->second->file_name)));
      if (shared < most) continue;
      equal = shared == most ? equal + 1 : 1;
      most = shared;
      best = at->second;
    }
    if (!best) {
      unknown.add(file);
      continue;
    }
    if (equal > 1) ambiguous.add(file);
    if (!taken.emplace(best->id, file).second) repeated.add(file);
    ids.push_back(best->id);
  }
  refuse(unknown, files.size(), "not in " + truth.source);
  refuse(ambiguous, files.size(), "match several images of " + truth.source);
  refuse(repeated, files.size(), "match the same image as another photo, in " + truth.source);
  return ids;
}

}  // namespace millrace::cli
