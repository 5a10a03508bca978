// From COCO into each format and back: what it can hold comes back, what it cannot is told.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/files.h"
#include "millrace/coco/data/subset.h"
#include "millrace/coco/sample/sample.h"
#include "millrace/tools/formats/import_folder.h"
#include "tests/support/data.h"
#include "tests/support/thrown.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// What a format promises of an object that comes back.
struct Promise {
  const char* format;
  bool crowds = false;   // kept
  bool box_only = true;  // objects without a shape are kept, as such
  double box = 0;        // largest difference of a side in pixels; < 0: of the shape instead
  enum Shapes { none, masks, near, exact } shapes = none;
};

const std::vector<Promise>& promises() {
  static const std::vector<Promise> all = {{"coco", true, true, 0, Promise::exact},
                                           {"csv", false, true, 2e-6, Promise::none},
                                           {"labelme", false, true, -1, Promise::exact},
                                           {"object-masks", true, false, -1, Promise::masks},
                                           {"voc", false, true, 2e-6, Promise::none},
                                           {"yolo", false, true, 2e-6, Promise::none},
                                           {"yolo-segments", false, true, -1, Promise::near}};
  return all;
}

coco::Rle mask_in(const coco::Dataset& data, const coco::Image& image,
                  const coco::Annotation& object) {
  return coco::mask_of(data.segmentation(object), static_cast<std::uint32_t>(image.height),
                       static_cast<std::uint32_t>(image.width));
}

std::string class_in(const coco::Dataset& data, const coco::Annotation& object) {
  return std::string(data.text(
      data.categories[static_cast<std::size_t>(data.category_index(object.category_id))].name));
}

/// The objects that a format keeps of an image.
std::vector<const coco::Annotation*> kept(const coco::Dataset& data, const coco::Image& image,
                                          const Promise& promise) {
  std::vector<const coco::Annotation*> objects;
  for (const auto& one : data.objects(image)) {
    if (one.crowd && !promise.crowds) continue;
    const bool has_shape = one.shape.kind != coco::ShapeKind::none;
    if (!promise.box_only && (!has_shape || coco::area(mask_in(data, image, one)) == 0)) continue;
    objects.push_back(&one);
  }
  return objects;
}

void expect_box(const double (&was)[4], const double (&is)[4], double most) {
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(was[i], is[i], most);
}

void expect_object(const coco::Dataset& was, const coco::Image& image_was,
                   const coco::Annotation& a, const coco::Dataset& is, const coco::Image& image_is,
                   const coco::Annotation& b, const Promise& promise) {
  EXPECT_EQ(class_in(was, a), class_in(is, b));
  EXPECT_EQ(a.crowd, b.crowd);
  const bool had_shape = a.shape.kind != coco::ShapeKind::none;
  if (promise.box >= 0 || !had_shape)
    expect_box(a.bbox, b.bbox, promise.box >= 0 ? promise.box : 2e-6);
  if (!had_shape) return;
  if (promise.shapes == Promise::exact) {
    const auto shape = was.segmentation(a);
    if (!std::holds_alternative<coco::Rle>(shape)) {
      EXPECT_EQ(shape, is.segmentation(b));
    }
  }
  if (promise.shapes == Promise::exact || promise.shapes == Promise::masks) {
    EXPECT_EQ(mask_in(was, image_was, a), mask_in(is, image_is, b));
  }
  if (promise.shapes == Promise::near) {
    // A polygon alone comes back to a millionth of a pixel; parts that overlap change places.
    const auto shape = was.segmentation(a);
    const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape);
    const auto back = std::get<std::vector<coco::Polygon>>(is.segmentation(b));
    if (polygons && polygons->size() == 1) {
      ASSERT_EQ(back[0].size(), (*polygons)[0].size());
      for (std::size_t i = 0; i < back[0].size(); ++i)
        EXPECT_NEAR(back[0][i], (*polygons)[0][i], 1e-5);
    } else if (!polygons) {
      EXPECT_EQ(mask_in(was, image_was, a), mask_in(is, image_is, b));
    }
  }
}

void expect_kept(const std::vector<Split>& was, const std::vector<Split>& is,
                 const Promise& promise) {
  ASSERT_EQ(was.size(), is.size());
  for (std::size_t s = 0; s < was.size(); ++s) {
    EXPECT_TRUE(was[s].name.starts_with(is[s].name)) << was[s].name << " " << is[s].name;
    std::map<std::string, const coco::Image*> images;
    for (const auto& image : is[s].data->images)
      images[std::string(is[s].data->text(image.file_name))] = &image;
    ASSERT_EQ(images.size(), was[s].data->images.size());
    for (const auto& image : was[s].data->images) {
      const std::string name(was[s].data->text(image.file_name));
      SCOPED_TRACE(name);
      ASSERT_TRUE(images.contains(name));
      const auto& other = *images[name];
      EXPECT_EQ(image.width, other.width);
      EXPECT_EQ(image.height, other.height);
      const auto a = kept(*was[s].data, image, promise);
      const auto b = is[s].data->objects(other);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        expect_object(*was[s].data, image, *a[i], *is[s].data, other, b[i], promise);
    }
  }
}

std::vector<Split> read_as(const fs::path& folder, std::string_view format,
                           coco::Findings& findings) {
  return find_format(format).read(Listing(folder), findings);
}

/// Into each format and back, with detection on the way.
void expect_round_trips(const fs::path& source) {
  coco::Findings findings(1);
  const auto was = read_as(source, "coco", findings);
  for (const auto& promise : promises()) {
    SCOPED_TRACE(promise.format);
    const testing::Scratch scratch;
    coco::Findings lost(3), read(3);
    import_folder(source, scratch / "there", "coco", promise.format, lost);
    const auto back = import_folder(scratch / "there", scratch / "back", "", "coco", read);
    for (const auto& one : read.sorted())
      EXPECT_NE(one.kind.severity, coco::Severity::error) << one.kind.name;
    expect_kept(was, read_as(scratch / "back", "coco", findings), promise);
    if (std::string_view(promise.format) == "coco") {
      EXPECT_THAT(lost.sorted(), IsEmpty());
    }
  }
}

/// Objects of every kind that COCO has.
fs::path write_kinds(const testing::Scratch& scratch) {
  const auto folder = scratch / "kinds";
  fs::create_directories(folder / "train2017/sub");
  fs::create_directories(folder / "annotations");
  const cv::Mat pixels(30, 50, CV_8UC3, cv::Scalar(9, 99, 40));
  for (const auto* name : {"a.jpg", "sub/b.jpg", "c.png"})
    std::ofstream(folder / "train2017" / name, std::ios::binary)
        << (std::string_view(name).ends_with("png") ? coco::encode_png(pixels)
                                                    : coco::encode_jpeg(pixels, 80));
  std::ofstream(folder / "annotations/instances_train2017.json") << R"({
    "images": [{"id": 7, "file_name": "a.jpg", "width": 50, "height": 30},
               {"id": 3, "file_name": "sub/b.jpg", "width": 50, "height": 30},
               {"id": 9, "file_name": "c.png", "width": 50, "height": 30}],
    "categories": [{"id": 5, "name": "teddy, bear"}, {"id": 2, "name": "naïve \"cat\""}],
    "annotations": [
      {"id": 1, "image_id": 7, "category_id": 5, "bbox": [1.25, 2.5, 10.1, 7.3], "area": 70, "iscrowd": 0},
      {"id": 2, "image_id": 7, "category_id": 2, "bbox": [20, 3, 9, 8], "area": 40, "iscrowd": 0,
       "segmentation": [[20, 3, 29, 3, 29, 11]]},
      {"id": 3, "image_id": 7, "category_id": 2, "bbox": [2, 20, 30, 6], "area": 60, "iscrowd": 0,
       "segmentation": [[2, 20, 8, 20, 8, 26, 2, 26], [22.5, 20, 32, 20.5, 31, 26]]},
      {"id": 4, "image_id": 7, "category_id": 5, "bbox": [40, 0, 4, 5], "area": 18, "iscrowd": 0,
       "segmentation": {"size": [30, 50], "counts": [1200, 5, 25, 1, 3, 1, 25, 1, 3, 1, 25, 5, 205]}},
      {"id": 5, "image_id": 7, "category_id": 5, "bbox": [10, 10, 2, 3], "area": 6, "iscrowd": 1,
       "segmentation": {"size": [30, 50], "counts": [310, 3, 27, 3, 1157]}},
      {"id": 6, "image_id": 3, "category_id": 5, "bbox": [1, 1, 2, 2], "area": 4, "iscrowd": 0, "ignore": 1,
       "segmentation": [[1, 1, 3, 1, 3, 3, 1, 3]]}]})";
  return folder;
}

TEST(RoundTrip, KeepsWhatEachFormatCanHoldOfEveryKindOfObject) {
  const testing::Scratch scratch;
  expect_round_trips(write_kinds(scratch));
}

TEST(RoundTrip, KeepsWhatEachFormatCanHoldOfGeneratedData) {
  const testing::Scratch scratch;
  coco::make_sample(scratch / "sample", {.train = 6, .val = 3});
  expect_round_trips(scratch / "sample");
}

/// Forty photos or fewer, with crowds.
fs::path forty_photos(const testing::Scratch& scratch) {
  coco::Findings findings(1);
  auto splits = read_as(testing::data_folder() / "coco_mini", "coco", findings);
  for (auto& split : splits) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < split.data->images.size() && chosen.size() < 20; ++i) {
      const auto& image = split.data->images[i];
      if (image.id % 3 == 0 ||
          std::ranges::any_of(split.data->objects(image), &coco::Annotation::crowd))
        chosen.push_back(i);
    }
    std::map<std::int64_t, std::int64_t> categories;
    for (const auto& one : split.data->categories) categories[one.id] = one.id;
    split.data = coco::subset(*split.data, chosen, categories);
  }
  find_format("coco").write(splits, scratch / "forty", findings);
  return scratch / "forty";
}

TEST(RoundTrip, KeepsWhatEachFormatCanHoldOfRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const testing::Scratch scratch;
  expect_round_trips(forty_photos(scratch));
}

TEST(RoundTrip, OfAWholeFolderStaysWhole) {
  for (const auto& promise : promises()) {
    SCOPED_TRACE(promise.format);
    const testing::Scratch scratch;
    Folder folder;
    folder.image("a.jpg", 60, 40).file("a.txt", "0 .5 .5 .2 .2\n").file("classes.txt", "dog\n");
    import_folder(folder.path(), scratch / "coco", "", "coco", folder.findings);
    coco::Findings findings(1);
    import_folder(scratch / "coco", scratch / "there", "", promise.format, findings);
    if (!promise.box_only) continue;  // nothing was left
    const auto back = read_as(scratch / "there", promise.format, findings);
    ASSERT_THAT(back, SizeIs(1));
    EXPECT_EQ(back[0].name, kWhole);
    EXPECT_THAT(boxes_of(back[0]), ::testing::ElementsAre("dog 24 16 12 8"));
  }
}

/// Of PNG masks with a value for each object, shared pixels are the smaller object's.
TEST(RoundTrip, MasksGiveSharedPixelsToTheSmallerObject) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const testing::Scratch photos;
  const auto source = forty_photos(photos);
  for (const auto* format : {"masks", "voc"}) {
    SCOPED_TRACE(format);
    const bool has_crowds = std::string_view(format) == "masks";
    const testing::Scratch scratch;
    coco::Findings findings(1), lost(1000);
    const auto was = read_as(source, "coco", findings);
    import_folder(source, scratch / "there", "", format, lost);
    const auto is = read_as(scratch / "there", format, findings);
    std::size_t compared = 0;
    for (std::size_t s = 0; s < was.size(); ++s)
      for (std::size_t n = 0; n < was[s].data->images.size(); ++n) {
        const auto& image = was[s].data->images[n];
        const auto& other = *std::ranges::find_if(is[s].data->images, [&](const auto& one) {
          return is[s].data->text(one.file_name) == was[s].data->text(image.file_name);
        });
        auto next = is[s].data->objects(other).begin();
        const auto objects = was[s].data->objects(image);
        for (std::size_t i = 0; i < objects.size(); ++i) {
          if (objects[i].crowd && !has_crowds) continue;
          const auto whole = mask_in(*was[s].data, image, objects[i]);
          auto left = whole;
          for (std::size_t j = 0; j < objects.size(); ++j) {
            if (j == i || (objects[j].crowd && !has_crowds)) continue;
            const auto other_mask = mask_in(*was[s].data, image, objects[j]);
            if (std::pair(coco::area(other_mask), i) < std::pair(coco::area(whole), j))
              left = coco::difference(left, other_mask);
          }
          if (coco::area(left) == 0) {
            if (!has_crowds) ++next;  // VOC keeps its box
            continue;
          }
          ++compared;
          EXPECT_EQ(left, mask_in(*is[s].data, other, *next++));
        }
      }
    EXPECT_GT(compared, 200u);
  }
}

TEST(Import, TwiceGivesTheSameBytes) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  for (const auto& format : formats()) {
    coco::Findings findings(1);
    const std::string one = std::string(format.name) + "-1", two = std::string(format.name) + "-2";
    import_folder(source, scratch / one, "coco", format.name, findings);
    import_folder(source, scratch / two, "coco", format.name, findings);
    const Listing a(scratch / one), b(scratch / two);
    ASSERT_EQ(a.folders(), b.folders());
    for (const auto& folder : a.folders())
      for (const auto& name : a.files(folder))
        EXPECT_EQ(read_file(a.path(joined_place(folder, name))),
                  read_file(b.path(joined_place(folder, name))));
  }
}

TEST(Import, LinksImagesAndLeavesTheSourceAlone) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  coco::Findings findings(1);
  import_folder(source, scratch / "out", "", "voc", findings);
  EXPECT_TRUE(fs::equivalent(source / "train2017/a.jpg", scratch / "out/JPEGImages/a.jpg"));
  fs::remove_all(scratch / "out");
  EXPECT_TRUE(fs::exists(source / "train2017/a.jpg"));
}

TEST(Import, RefusesAFolderThatIsThereAndLeavesNoHalf) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  coco::Findings findings(1);
  import_folder(source, scratch / "out", "", "voc", findings);
  EXPECT_THAT(testing::message_of<ConfigError>(
                  [&] { import_folder(source, scratch / "out", "", "coco", findings); }),
              HasSubstr((scratch / "out").string()));
  EXPECT_THAT(
      testing::message_of([&] { import_folder(source, scratch / "new", "voc", "coco", findings); }),
      HasSubstr("no image with a label"));
  EXPECT_FALSE(fs::exists(scratch / "new"));
  EXPECT_FALSE(fs::exists(scratch / "new.part"));
}

TEST(Import, TellsWhatAFormatCannotHold) {
  const testing::Scratch scratch;
  const auto source = write_kinds(scratch);
  const std::map<std::string, std::vector<std::string>> lost = {
      {"coco", {}},
      {"csv", {"lost-crowd", "lost-shape", "lost-ignore"}},
      {"labelme", {"lost-crowd", "lost-ignore"}},
      {"masks", {"lost-box", "lost-ignore"}},
      {"object-masks", {"lost-box", "lost-ignore"}},
      {"voc", {"lost-crowd", "lost-ignore"}},
      {"yolo", {"lost-crowd", "lost-shape", "lost-ignore"}},
      {"yolo-segments", {"lost-crowd", "lost-ignore", "lost-parts", "lost-runs", "lost-box-only"}}};
  for (const auto& [format, kinds] : lost) {
    coco::Findings findings(1);
    import_folder(source, scratch / format, "", format, findings);
    std::vector<std::string> told;
    for (const auto& one : findings.sorted()) told.emplace_back(one.kind.name);
    EXPECT_THAT(told, ::testing::UnorderedElementsAreArray(kinds)) << format;
  }
}

TEST(Import, RefusesNamesThatWouldShareALabelFile) {
  Folder folder;
  folder.image("a.jpg", 10, 10)
      .image("a.png", 10, 10)
      .file("b.csv", "a.jpg,1,1,2,2,x\na.png,1,1,2,2,x\n");
  const testing::Scratch scratch;
  for (const auto* format : {"yolo", "voc", "labelme", "masks"})
    EXPECT_THAT(testing::message_of([&] {
                  import_folder(folder.path(), scratch / "out", "", format, folder.findings);
                }),
                HasSubstr("a.jpg and a.png would have one label file"));
}

TEST(Import, LeavesOutImagesOfACocoFileThatAreNotThere) {
  Folder folder;
  folder.image("val/a.jpg", 10, 10).file("annotations/instances_val.json", R"({
    "images": [{"id": 1, "file_name": "a.jpg", "width": 10, "height": 10},
               {"id": 2, "file_name": "b.jpg", "width": 10, "height": 10}],
    "categories": [{"id": 1, "name": "x"}],
    "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [1, 1, 2, 2]},
                    {"id": 2, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]},
                    {"id": 3, "image_id": 1, "category_id": 8, "bbox": [1, 1, 2, 2]}]})");
  const auto splits = folder.read();
  EXPECT_THAT(boxes_of(splits[0]), ::testing::ElementsAre("x 1 1 2 2"));
  EXPECT_THAT(folder.found(), ::testing::ElementsAre("category-unknown 1", "image-missing 1"));
}

TEST(Coco, EachLayoutIsFound) {
  const std::string json =
      R"({"images": [{"id": 1, "file_name": "a.jpg", "width": 10, "height": 10}],
    "categories": [{"id": 1, "name": "x"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 2, 2]}]})";
  const struct {
    const char *annotations, *image, *split;
  } layouts[] = {{"annotations/instances_train2017.json", "train2017/a.jpg", "train2017"},
                 {"annotations/instances_default.json", "images/default/a.jpg", "default"},
                 {"annotations/instances_default.json", "images/a.jpg", "default"},
                 {"train/_annotations.coco.json", "train/a.jpg", "train"},
                 {"labels.json", "a.jpg", kWhole},
                 {"labels.json", "data/a.jpg", kWhole},
                 {"annotations/valid.json", "valid/a.jpg", "val"}};
  for (const auto& [annotations, image, split] : layouts) {
    Folder folder;
    folder.file(annotations, json).image(image, 10, 10);
    const auto splits = folder.read();
    ASSERT_THAT(splits, SizeIs(1)) << annotations;
    EXPECT_EQ(splits[0].name, split);
    EXPECT_EQ(splits[0].images / "a.jpg", folder.path() / image);
  }
}

}  // namespace
}  // namespace millrace::formats
