// Forty real photos in the formats of other tools: `trainer init` on each, and its configuration
// trains. Minutes long, so labelled slow.
#include <numeric>
#include <set>

#include "tests/end_to_end/training.h"
#include "tests/support/data.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

constexpr std::size_t kPhotos = 40, kSteps = 60;

/// Photos with people, chairs and bottles as a COCO folder with one split.
void make_forty(const fs::path& from, const fs::path& to) {
  const std::set<std::string> wanted = {"person", "chair", "bottle"};
  fs::create_directories(to / "images");
  Json images = Json::array(), annotations = Json::array(), categories = Json::array();
  for (const std::string split : {"train2017", "val2017"}) {
    const auto all = read_json(from / "annotations" / ("instances_" + split + ".json"));
    std::set<std::int64_t> ids;
    categories = Json::array();
    for (const auto& category : all["categories"])
      if (wanted.contains(category["name"])) {
        categories.push_back(category);
        ids.insert(category["id"].get<std::int64_t>());
      }
    for (const auto& image : all["images"]) {
      Json own = Json::array();
      bool crowd = false;
      for (const auto& one : all["annotations"]) {
        if (one["image_id"] != image["id"] || !ids.contains(one["category_id"])) continue;
        crowd = crowd || one["iscrowd"] == 1;
        own.push_back(one);
      }
      if (own.empty() || own.size() > 12 || crowd || images.size() == kPhotos) continue;
      images.push_back(image);
      annotations.insert(annotations.end(), own.begin(), own.end());
      const std::string name = image["file_name"];
      fs::copy_file(from / split / name, to / "images" / name);
    }
  }
  write_json(to / "annotations.json",
             {{"images", images}, {"annotations", annotations}, {"categories", categories}});
}

class OwnData : public Training, public ::testing::WithParamInterface<const char*> {};

TEST_P(OwnData, TrainsFromTheFolderAlone) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  const std::string format = GetParam();
  const auto photos = in_folder(format), out = in_folder("out");
  make_forty(data_folder() / "coco_mini", in_folder("forty"));
  successful(trainer({"import", in_folder("forty"), "--to", format, "--out", photos}));
  const auto weights =
      data_folder() / "weights" / "R18_C1-C4_imagenet_torchvision_bnfolded_fp16.npz";
  const auto json = successful(trainer({"init", out, "--data", photos, "--weights",
                                        fs::absolute(weights), "--json"}))
                        .json();
  std::cout << format << ": " << json["time"] << "\n";
  const auto train = read_json(out / "data" / "annotations" / "instances_train.json"),
             val = read_json(out / "data" / "annotations" / "instances_val.json");
  EXPECT_EQ(train["images"].size() + val["images"].size(), kPhotos);
  EXPECT_EQ(train["categories"].size(), 3U);

  const auto config = (out / "config.toml").string();
  successful(trainer(with_settings({"run", config}, {"train.max_steps=" + std::to_string(kSteps),
                                                     "callbacks.log.every=1 steps"})));
  std::vector<double> losses;
  for (const auto& line : json_lines(out / "runs" / "config-1" / "metrics.jsonl"))
    if (line.contains("loss")) losses.push_back(line["loss"]);
  ASSERT_GE(losses.size(), kSteps);
  const auto mean = [](auto begin, auto end) {
    return std::accumulate(begin, end, 0.) / static_cast<double>(end - begin);
  };
  const double first = mean(losses.begin(), losses.begin() + 15),
               last = mean(losses.end() - 15, losses.end());
  std::cout << format << ": loss " << first << " to " << last << "\n";
  EXPECT_LT(last, .9 * first);
}

INSTANTIATE_TEST_SUITE_P(Formats, OwnData, ::testing::Values("voc", "yolo-segments", "masks"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace millrace::testing
