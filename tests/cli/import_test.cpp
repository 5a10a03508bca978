// trainer import: converts labels of other tools to COCO's layout.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

/// A folder of YOLO labels, one of which is invalid.
class Import : public Trainer {
 protected:
  Import() {
    const auto data = make_data();
    fs::create_directories(yolo_);
    write_text(yolo_ / "data.yaml", "train: images/train\nval: images/val\nnames: [a, b, c]\n");
    for (const std::string split : {"train", "val"}) {
      for (const auto& image : fs::directory_iterator(data / (split + "2017"))) {
        fs::create_directories(yolo_ / "images" / split);
        fs::create_directories(yolo_ / "labels" / split);
        fs::copy_file(image, yolo_ / "images" / split / image.path().filename());
        write_text(yolo_ / "labels" / split / image.path().stem().concat(".txt"),
                   "0 .5 .5 .2 .2\n2 .3 .3 .4 .4\n");
      }
    }
  }

  fs::path yolo_ = in_folder("yolo"), out_ = in_folder("out");
};

TEST_F(Import, WritesFolderThatDoctorAccepts) {
  const auto imported = successful(trainer({"import", yolo_, "--out", out_}));
  EXPECT_THAT(imported.out,
              AllOf(HasSubstr("yolo"), HasSubstr("data.yaml"), HasSubstr("train: 8 images"),
                    HasSubstr("val: 4 images"), HasSubstr("hard links")));
  successful(trainer(with_settings(
      {"doctor", "configs/maskrcnn.toml"},
      {setting("data.root", out_), "data.train=train", "data.val=val", "model.masks=false"})));
}

TEST_F(Import, ReportsFaultWithFileAndLine) {
  const auto label = *fs::directory_iterator(yolo_ / "labels/train");
  write_text(label.path(), "0 .5 .5 .1 .1\n99 .5 .5 .1 .1\n");
  const auto imported = successful(trainer({"import", yolo_, "--out", out_}));
  EXPECT_THAT(imported.out, AllOf(HasSubstr("label-class, 1"),
                                  HasSubstr(label.path().filename().string() + ":2: ")));
  const auto json =
      successful(trainer({"import", yolo_, "--out", in_folder("2"), "--json"})).json();
  EXPECT_EQ(json["format"], "yolo");
  EXPECT_EQ(json["splits"][0]["images"], 8);
  EXPECT_EQ(json["findings"][0]["name"], "label-class");
  EXPECT_EQ(json["findings"][0]["count"], 1);
}

TEST_F(Import, RejectsWrongUse) {
  fs::create_directories(in_folder("empty"));
  expect_error(trainer({"import", in_folder("empty"), "--out", out_}), 2,
               in_folder("empty").string());
  expect_error(trainer({"import", in_folder("nowhere"), "--out", out_}), 2,
               in_folder("nowhere").string());
  expect_error(trainer({"import", yolo_, "--out", out_, "--format", "yolov8"}), 2, "'yolov8'");
  expect_error(trainer({"import", yolo_, "--out", out_, "--format", "vox"}), 2, "'voc'");
  expect_error(trainer({"import", yolo_, "--out", yolo_}), 2, yolo_.string());
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(Import, StartsWithoutLibtorch) {
  const auto objects = run("/usr/bin/ldd", {MILLRACE_TRAINER});
  EXPECT_THAT(objects.out, Not(HasSubstr("torch")));
}

}  // namespace
}  // namespace millrace::testing
