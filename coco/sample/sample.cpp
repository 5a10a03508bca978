#include "millrace/coco/sample/sample.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <opencv2/imgproc.hpp>
#include <string_view>

#include "millrace/base/disk/part_folder.h"
#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/coco/picture/encode.h"
#include "millrace/coco/sample/sample_scene.h"

namespace millrace::coco {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// One of the two splits. Training images have odd ids and validation images even ones, so that the
/// ids are disjoint and neither split changes with the size of the other.
struct Split {
  std::string name;
  std::int64_t images;
  std::int64_t first_id;

  std::int64_t id(std::int64_t index) const { return first_id + 2 * index; }
};

constexpr auto kTraining = "train2017", kValidation = "val2017";

fs::path annotations_of(const fs::path& root, const std::string& split) {
  return root / "annotations" / ("instances_" + split + ".json");
}

/// The beginning of an annotation file, up to the seed.
constexpr std::string_view kDescription = R"({"info": {"description":"Millrace sample, seed )";

/// The JSON texts of one image.
struct Entry {
  std::string image, annotations;
};

/// Writes a new file without syncing it; its folder is synced later.
void write_new_file(const fs::path& file, const std::string& bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), std::ssize(bytes));
  out.close();
  if (!out) throw Error(file.string() + ": cannot be written: " + std::strerror(errno));
}

Entry make_image(const fs::path& folder, std::int64_t id, std::int64_t seed) {
  Rng rng{static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(id)};
  const auto scene = plan_scene(rng);
  cv::Mat picture = paint(scene, rng);  // BGR
  cv::cvtColor(picture, picture, cv::COLOR_BGR2RGB);
  const auto name = fmt::format("{:012}.jpg", id);
  write_new_file(folder / name, encode_jpeg(picture, 90));
  const Json image = {{"license", 1},
                      {"file_name", name},
                      {"height", scene.size.height},
                      {"width", scene.size.width},
                      {"id", id}};
  return {image.dump(), annotate(scene, id)};
}

/// Returns the beginning of an annotation file, before the images.
std::string preamble(const SampleOptions& options) {
  Json categories = Json::array();
  for (const auto& kind : kinds())
    categories.push_back(
        {{"supercategory", "shape"}, {"id", categories.size() + 1}, {"name", kind.name}});
  const Json license = {{"id", 1},
                        {"name", "CC0 1.0"},
                        {"url", "https://creativecommons.org/publicdomain/zero/1.0/"}};
  return fmt::format("{}{}\",\"version\":\"1.0\"}},\n\"licenses\": [{}],\n\"categories\": {},\n",
                     kDescription, options.seed, license.dump(), categories.dump());
}

/// Returns a JSON list of the non-empty texts.
std::string list_of(const std::vector<Entry>& entries, std::string Entry::*part) {
  std::vector<std::string_view> texts;
  for (const auto& entry : entries)
    if (const std::string& text = entry.*part; !text.empty()) texts.push_back(text);
  return fmt::format("[{}{}\n]", texts.empty() ? "" : "\n", fmt::join(texts, ",\n"));
}

void write_split(const fs::path& root, const Split& split, const SampleOptions& options) {
  const auto folder = root / split.name;
  make_writable_folder(folder);
  std::vector<Entry> entries(static_cast<std::size_t>(split.images));
  std::atomic<std::int64_t> done = 0;
  tbb::parallel_for(std::int64_t{0}, split.images, [&](std::int64_t i) {
    entries[static_cast<std::size_t>(i)] = make_image(folder, split.id(i), options.seed);
    if (const auto n = ++done; n % 10000 == 0)
      log_info("{}: drew {} of {} images", split.name, n, split.images);
  });
  write_file_atomically(
      annotations_of(root, split.name),
      fmt::format("{}\"images\": {},\n\"annotations\": {}}}\n", preamble(options),
                  list_of(entries, &Entry::image), list_of(entries, &Entry::annotations)));
}

}  // namespace

void make_sample(const fs::path& folder, const SampleOptions& options) {
  PartFolder part(folder, PartFolder::Existing::refuse);
  make_writable_folder(part.path() / "annotations");
  write_split(part.path(), {kTraining, options.train, 1}, options);
  write_split(part.path(), {kValidation, options.val, 2}, options);
  sync_file_system(part.path());
  part.publish();
}

std::optional<SampleOptions> sample_in(const fs::path& folder) try {
  std::string begin(kDescription.size(), '\0');
  std::ifstream annotations(annotations_of(folder, kTraining));
  SampleOptions made;
  if (!annotations.read(begin.data(), std::ssize(begin)) || begin != kDescription ||
      !(annotations >> made.seed))
    return std::nullopt;
  const auto images = [&](const char* split) {
    return std::distance(fs::directory_iterator(folder / split), {});
  };
  made.train = images(kTraining);
  made.val = images(kValidation);
  return made;
} catch (const fs::filesystem_error& error) {
  throw Error(error.what());
}

}  // namespace millrace::coco
