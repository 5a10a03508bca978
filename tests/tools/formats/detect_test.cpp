// Detection of a folder's format, and the messages for ambiguous folders.
#include "tests/support/thrown.h"
#include "tests/tools/formats/folders.h"

namespace millrace::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string name_of(const Folder& folder) {
  return std::string(detect_format(folder.listing()).format->name);
}

constexpr const char* kVoc = "<annotation><object><name>a</name></object></annotation>";
constexpr const char* kLabelMe = R"({"version":"5.5.0","shapes":[],"imagePath":"a.jpg"})";
constexpr const char* kCoco = R"({"images":[],"annotations":[],"categories":[]})";

TEST(Detect, DetectsEachFormat) {
  EXPECT_EQ(name_of(Folder().image("JPEGImages/a.jpg", 4, 4).file("Annotations/a.xml", kVoc)),
            "voc");
  EXPECT_EQ(name_of(Folder().image("a.jpg", 4, 4).file("a.txt", "0 .5 .5 .1 .1\n")), "yolo");
  EXPECT_EQ(name_of(Folder()
                        .image("images/train/a.jpg", 4, 4)
                        .file("labels/train/a.txt", "")
                        .file("data.yaml", "names: [a]\ntrain: images/train\n")),
            "yolo");
  EXPECT_EQ(name_of(Folder().image("a.jpg", 4, 4).file("a.json", kLabelMe)), "labelme");
  EXPECT_EQ(
      name_of(
          Folder().image("val2017/a.jpg", 4, 4).file("annotations/instances_val2017.json", kCoco)),
      "coco");
  EXPECT_EQ(name_of(Folder().image("a.jpg", 4, 4).file("b.csv", "a.jpg,1,1,2,2,cat\n")), "csv");
  EXPECT_EQ(name_of(Folder().image("images/a.jpg", 4, 4).mask("masks/a.png", {"01", "00"})),
            "masks");
}

TEST(Detect, ListsFormatsAndFilesIfUnlabelled) {
  Folder folder;
  folder.image("a.jpg", 4, 4).image("b/c.jpg", 4, 4).file("notes.txt", "remember the milk\n");
  const auto message = testing::message_of<ConfigError>([&] { detect_format(folder.listing()); });
  EXPECT_THAT(message, AllOf(HasSubstr("no labels found"), HasSubstr("\n  Pascal VOC"),
                             HasSubstr("2 .jpg, 1 .txt")));
}

TEST(Detect, ReportsAllMatchingFormats) {
  Folder folder;
  folder.image("a.jpg", 4, 4).file("a.xml", kVoc).file("a.txt", "0 .5 .5 .1 .1\n");
  const auto message = testing::message_of<ConfigError>([&] { detect_format(folder.listing()); });
  EXPECT_THAT(message, AllOf(HasSubstr("voc ("), HasSubstr("a.xml"), HasSubstr("yolo ("),
                             HasSubstr("--format")));
}

TEST(Detect, IgnoresTextFilesThatAreNotYolo) {
  Folder folder;
  folder.image("a.jpg", 4, 4).file("a.txt", "a photo of a cat\n");
  EXPECT_THAT(testing::message_of<ConfigError>([&] { detect_format(folder.listing()); }),
              HasSubstr("no labels"));
}

TEST(Listing, RejectsPathThatIsNotFolder) {
  Folder folder;
  folder.file("a.xml", "");
  EXPECT_THAT(testing::message_of<ConfigError>([&] { Listing(folder.path() / "b"); }),
              HasSubstr("not found"));
  EXPECT_THAT(testing::message_of<ConfigError>([&] { Listing(folder.path() / "a.xml"); }),
              HasSubstr("is a file"));
}

TEST(Listing, StopsAtLinkCycles) {
  Folder folder;
  folder.image("images/a.jpg", 4, 4);
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "images/again");
  EXPECT_THAT(folder.listing().images_below(""), ::testing::ElementsAre("images/a.jpg"));
}

TEST(FindFormat, SuggestsSimilarName) {
  EXPECT_EQ(find_format("voc").name, "voc");
  EXPECT_THAT(testing::message_of<ConfigError>([] { find_format("yol"); }), HasSubstr("'yolo'"));
}

TEST(EachFormat, RejectsFolderWithoutLabels) {
  Folder folder;
  folder.image("a.jpg", 4, 4);
  for (const auto& format : formats()) {
    coco::Findings findings(1);
    EXPECT_THAT(testing::message_of([&] { format.read(folder.listing(), findings); }),
                HasSubstr(folder.path().string()))
        << format.name;
  }
}

}  // namespace
}  // namespace millrace::formats
