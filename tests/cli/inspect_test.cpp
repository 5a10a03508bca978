// trainer inspect: its page, images and statistics, on data of all kinds.
#include "tests/cli/trainer.h"
#include "tests/support/data.h"
#include "tests/support/page_json.h"

namespace millrace::testing {
namespace {

class Inspect : public TrainerOnData {
 protected:
  Outcome inspect(const fs::path& out, const Words& overrides = {}, const Words& more = {}) const {
    return trainer(on(data_, {"inspect"}, overrides) + Words{"--out", out} + more);
  }
  Json inspected(const Words& overrides = {}) const {
    return successful(inspect(in_folder("out"), overrides, {"--json"})).json();
  }
  std::string page(const std::string& out = "out") const {
    return read_text(in_folder(out) / "index.html");
  }
  Json view() const { return page_json(page()); }

  static Words names_in(const fs::path& folder) {
    Words names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  static Words remarks(const Json& json) {
    Words names;
    for (const auto& one : json["remarks"]) names.push_back(one["name"]);
    return names;
  }

  /// Returns the sum of a histogram's counts.
  static std::uint64_t sum(const Json& histogram) {
    std::uint64_t all = 0;
    for (const auto& count : histogram["counts"]) all += count.get<std::uint64_t>();
    return all;
  }
};

TEST_F(Inspect, WritesPageAndPictures) {
  const auto done = successful(inspect(in_folder("out"), {}, {"--count", "2"}));
  EXPECT_THAT(names_in(in_folder("out")),
              ElementsAre("batch-0.png", "batch-1.png", "histograms.png", "index.html"));
  EXPECT_THAT(done.out, StartsWith("train2017: 8 images, "));
  EXPECT_THAT(done.out, HasSubstr("\nval2017: 4 images, "));
  EXPECT_THAT(done.out, HasSubstr("index.html"));
  const auto shown = view();
  EXPECT_EQ(shown["kind"], "inspection");
  EXPECT_EQ(shown["batches"]["pictures"]["images"].size(), 8U);
  EXPECT_EQ(shown["batches"]["pictures"]["images"][7]["name"], "batch 1, image 3");
  EXPECT_EQ(shown["splits"][0]["name"], "train2017");
  EXPECT_EQ(shown["splits"][1]["name"], "val2017");
  EXPECT_GT(shown["learned"]["anchors"].size(), 1U);
  for (const auto& [name, histogram] : shown["learned"]["histograms"].items())
    EXPECT_EQ(histogram["bins"]["edges"].size(), histogram["bins"]["counts"].size() + 1) << name;
  EXPECT_THAT(page(), Not(HasSubstr(in_folder("out").string())));
}

TEST_F(Inspect, WritesSameBytesForAnyThreadCount) {
  successful(inspect(in_folder("one"), {"data.threads=1"}));
  successful(inspect(in_folder("three"), {"data.threads=3"}));
  for (const auto& name : names_in(in_folder("one")))
    EXPECT_EQ(read_text(in_folder("one") / name), read_text(in_folder("three") / name)) << name;
}

TEST_F(Inspect, DrawsTrainingBatches) {
  const auto json = inspected({"data.aspect_grouping=false"});
  const auto bench =
      successful(trainer(on(data_, {"bench", "dataflow"}, {"data.aspect_grouping=false"}) +
                         Words{"--batches", "4", "--json"}))
          .json();
  EXPECT_EQ(json["batches"]["images"], bench["images"]);
  EXPECT_DOUBLE_EQ(json["batches"]["padding_share"].get<double>(),
                   bench["padding_share"].get<double>());
}

TEST_F(Inspect, CountsEveryObjectOncePerHistogram) {
  const auto json = inspected();
  const auto& learned = json["learned"];
  const auto annotations = read_json(annotations_);
  EXPECT_EQ(learned["objects"].get<std::size_t>() + learned["crowds"].get<std::size_t>(),
            annotations["annotations"].size());
  EXPECT_FALSE(learned["from_batches"]);
  for (const auto* id : {"object_size", "object_ratio", "anchor_iou"})
    EXPECT_EQ(sum(learned["histograms"][id]), learned["objects"]) << id;
  for (const auto* id : {"objects_per_image", "image_size"})
    EXPECT_EQ(sum(learned["histograms"][id]), learned["images"]) << id;
  std::uint64_t objects = 0;
  for (const auto& one : learned["classes"]) objects += one["objects"].get<std::uint64_t>();
  EXPECT_EQ(objects, learned["objects"]);
  const auto& all = learned["anchors"][0];
  EXPECT_EQ(all["foreground"].get<int>() + all["low_quality"].get<int>() + all["none"].get<int>(),
            all["objects"]);
  EXPECT_EQ(json["val"]["images"], 4);
}

TEST_F(Inspect, SuggestsAnchorSizes) {
  const auto json = inspected({"model.anchors.sizes=[256,512,1024,2048,4096]"});
  EXPECT_THAT(remarks(json), Contains("anchor-sizes"));
  for (const auto& one : json["remarks"])
    if (one["name"] == "anchor-sizes") {
      EXPECT_THAT(one["text"].get<std::string>(), HasSubstr("model.anchors.sizes = ["));
      EXPECT_TRUE(one["warning"].get<bool>());
    }
}

TEST_F(Inspect, ExaminesBatchesOfMixingRecipes) {
  const auto config = write_heir(in_folder("mixed.toml"), R"(
[[data.stages]]
type = "read"
[[data.stages]]
type = "decode"
[[data.stages]]
type = "large_scale_jitter"
width = 160
height = 160
[[data.stages]]
type = "copy_paste"
[[data.stages]]
type = "mosaic"
width = 96
height = 96
[[data.stages]]
type = "group_by_aspect_ratio"
[[data.stages]]
type = "pad"
)");
  const auto json =
      successful(trainer(with_settings({"inspect", config, "--out", in_folder("out"), "--json"},
                                       {setting("data.root", data_)})))
          .json();
  EXPECT_TRUE(json["learned"]["from_batches"].get<bool>());
  EXPECT_EQ(json["learned"]["images"], 256);
  EXPECT_EQ(json["train"]["images"], 8);
  EXPECT_THAT(view()["learned"]["name"].get<std::string>(), HasSubstr("64"));
}

TEST_F(Inspect, ExaminesRecordsAndDeclaredSources) {
  successful(trainer(on(data_, {"pack"}) + Words{"--out", in_folder("store")}));
  const auto config = write_heir(in_folder("records.toml"),
                                 "[[data.sources]]\ntype = 'records'\n"
                                 "folder = '" +
                                     in_folder("store").string() + "'");
  const auto json =
      successful(trainer(with_settings({"inspect", config, "--out", in_folder("out"), "--json"},
                                       {setting("data.root", data_), "data.val=''"})))
          .json();
  EXPECT_EQ(json["learned"]["name"], "data.sources");
  EXPECT_EQ(json["learned"]["images"], 8);
  EXPECT_EQ(json["learned"]["objects"], inspected()["learned"]["objects"]);
}

TEST_F(Inspect, WorksWithoutValidationSplit) {
  const auto done = successful(inspect(in_folder("out"), {"data.val=''"}));
  EXPECT_THAT(done.out, HasSubstr("data.val"));
  EXPECT_THAT(page(), Not(HasSubstr("val2017")));
}

TEST_F(Inspect, WorksWithoutMasks) {
  for (const auto& file : {annotations_, val_annotations_})
    edit(file, [](Json& json) {
      for (auto& one : json["annotations"]) one.erase("segmentation");
    });
  const auto json = inspected({"model.masks=false"});
  EXPECT_GT(json["learned"]["objects"], 0);
}

TEST_F(Inspect, RejectsDataSetWithoutObjects) {
  edit(annotations_, [](Json& json) { json["annotations"] = Json::array(); });
  expect_error(inspect(in_folder("out")), 2, "data.classes");
  EXPECT_FALSE(fs::exists(in_folder("out")));
  const auto json = inspected({"data.filter_empty=false"});
  EXPECT_THAT(remarks(json), ElementsAre("no-objects"));
}

TEST_F(Inspect, NamesMissingSplit) {
  expect_error(inspect(in_folder("out"), {"data.val=other2017"}), 2, "instances_other2017.json");
}

TEST_F(Inspect, ShowsUnreadablePhoto) {
  write_text(first_image(), "no picture");
  const auto done = successful(inspect(in_folder("out"), {"data.max_skipped=0.5"}));
  EXPECT_THAT(page(), HasSubstr("cannot be read"));
  EXPECT_EQ(view()["batches"]["skipped_reasons"].size(), 1U);
}

TEST_F(Inspect, ShowsRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto config = Words{"inspect", "configs/real_photos.toml"};
  const auto done = successful(trainer(
      with_settings(config, {setting("data.root", fs::absolute(data_folder() / "coco_mini"))}) +
      Words{"--out", in_folder("out"), "--json"}));
  EXPECT_EQ(done.json()["train"].is_null() ? done.json()["learned"]["images"]
                                           : done.json()["train"]["images"],
            87);  // one of the 88 has no object
  EXPECT_LT(fs::file_size(in_folder("out") / "index.html"), 5'000'000U);
}

}  // namespace
}  // namespace millrace::testing
