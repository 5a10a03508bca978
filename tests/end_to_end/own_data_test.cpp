// Forty real photos with labels in other tools' formats: `trainer init` reads each folder, and the
// configuration that it writes trains. Takes minutes, so it is labelled slow.
#include <fmt/format.h>

#include <array>
#include <map>
#include <numeric>
#include <set>

#include "tests/end_to_end/training.h"
#include "tests/support/data.h"
#include "tests/support/json_lines.h"

namespace millrace::testing {
namespace {

constexpr std::size_t kPhotos = 40, kSteps = 60;

/// Makes a COCO folder with one split, from photos that show people, chairs or bottles.
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

/// Calls `use(image, objects, classes)` for each image of a COCO folder. Returns the class names by
/// id.
template <class Use>
std::map<std::int64_t, std::string> each_image(const fs::path& coco, const Use& use) {
  const auto all = read_json(coco / "annotations.json");
  std::map<std::int64_t, std::string> names;
  for (const auto& category : all["categories"])
    names[category["id"].get<std::int64_t>()] = category["name"].get<std::string>();
  for (const auto& image : all["images"]) {
    Json own = Json::array();
    for (const auto& one : all["annotations"])
      if (one["image_id"] == image["id"]) own.push_back(one);
    use(image, own, names);
  }
  return names;
}

/// Writes the labels as Pascal VOC boxes.
void write_voc(const fs::path& coco, const fs::path& to) {
  fs::create_directories(to / "Annotations");
  fs::copy(coco / "images", to / "JPEGImages");
  each_image(coco, [&](const Json& image, const Json& objects, const auto& names) {
    const std::string file = image["file_name"];
    auto xml = fmt::format("<annotation><filename>{}</filename>", file);
    for (const auto& one : objects) {
      const auto box = one["bbox"].get<std::array<double, 4>>();
      xml += fmt::format(
          "<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax>"
          "<ymax>{}</ymax></bndbox></object>",
          names.at(one["category_id"]), box[0] + 1, box[1] + 1, box[0] + box[2], box[1] + box[3]);
    }
    write_text(to / "Annotations" / fs::path(file).replace_extension(".xml"),
               xml + "</annotation>");
  });
}

/// Writes the labels as YOLO polygons; only the first part of each object.
void write_yolo(const fs::path& coco, const fs::path& to) {
  fs::create_directories(to / "labels");
  fs::copy(coco / "images", to / "images");
  const auto names = each_image(coco, [&](const Json& image, const Json& objects, const auto& all) {
    std::string text;
    for (const auto& one : objects) {
      text += std::to_string(std::distance(all.begin(), all.find(one["category_id"])));
      const auto part = one["segmentation"][0].template get<std::vector<double>>();
      for (std::size_t i = 0; i < part.size(); ++i)
        text += fmt::format(" {}", part[i] / image[i % 2 == 0 ? "width" : "height"].get<double>());
      text += '\n';
    }
    const std::string file = image["file_name"];
    write_text(to / "labels" / fs::path(file).replace_extension(".txt"), text);
  });
  std::string classes;
  for (const auto& [id, name] : names) classes += name + "\n";
  write_text(to / "classes.txt", classes);
}

/// Writes the labels as LabelMe polygons.
void write_labelme(const fs::path& coco, const fs::path& to) {
  fs::copy(coco / "images", to);
  int group = 0;
  each_image(coco, [&](const Json& image, const Json& objects, const auto& names) {
    Json shapes = Json::array();
    for (const auto& one : objects) {
      ++group;
      for (const auto& part : one["segmentation"]) {
        Json points = Json::array();
        for (std::size_t i = 0; i + 1 < part.size(); i += 2)
          points.push_back({part[i], part[i + 1]});
        shapes.push_back({{"label", names.at(one["category_id"])},
                          {"points", points},
                          {"group_id", group},
                          {"shape_type", "polygon"}});
      }
    }
    const std::string file = image["file_name"];
    write_json(to / fs::path(file).replace_extension(".json"),
               {{"version", "5.5.0"}, {"shapes", shapes}, {"imagePath", file}});
  });
}

class OwnData : public Training, public ::testing::WithParamInterface<const char*> {};

TEST_P(OwnData, TrainsFromEachLabelFormat) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  const std::string format = GetParam();
  const auto photos = in_folder(format), out = in_folder("out");
  make_forty(data_folder() / "coco_mini", in_folder("forty"));
  const auto write_labels = format == "voc"    ? write_voc
                            : format == "yolo" ? write_yolo
                                               : write_labelme;
  write_labels(in_folder("forty"), photos);
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

INSTANTIATE_TEST_SUITE_P(Formats, OwnData, ::testing::Values("voc", "yolo", "labelme"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace millrace::testing
