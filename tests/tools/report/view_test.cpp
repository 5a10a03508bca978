// A page is the viewer with its JSON embedded: complete, and with all text escaped.
#include "millrace/tools/report/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "millrace/base/files.h"
#include "millrace/tools/report/gallery.h"
#include "millrace/tools/report/report.h"
#include "tests/support/page_json.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::report {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Scratch;

TEST(View, WritesSelfContainedPage) {
  const auto page = view_page("runs", "a test", {{"runs", ordered_json::array()}});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const char* outside :
       {"src=\"", "href=\"", "url(", "@import", "<link", "@DATA@", "import {"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_EQ(testing::page_json(page),
            nlohmann::json::parse(R"({"kind":"runs","made_by":"a test","runs":[]})"));
}

TEST(View, EscapesText) {
  const std::string evil = "</script><!--<script>alert(1)</script>\xff";
  const auto page = view_page("study", "a test", {{"name", evil}});
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(testing::page_json(page)["name"], "</script><!--<script>alert(1)</script>\xef\xbf\xbd");
}

TEST(View, ContainsPicturesWithShapes) {
  const Gallery gallery{
      .categories = {"cup"},
      .pictures = {{.title = "a.jpg",
                    .width = 40,
                    .height = 30,
                    .jpeg = "foob",
                    .shapes = {{.score = .87654, .box = {1, 2.5, 3, 4}, .note = "duplicate"},
                               {.box = {1, 2, 3, 4},
                                .outline = {{1, 2, 4, 2, 4, 6}},
                                .kind = Shape::annotated,
                                .found_at = 0}},
                    .metrics = {{"F1", .5}},
                    .tags = {"any"}}},
      .score = .3};
  EXPECT_EQ(to_json(gallery), ordered_json::parse(R"({"classes": ["cup"], "score": 0.3, "images": [
    {"name": "a.jpg", "width": 40, "height": 30, "figures": {"F1": 0.5}, "tags": ["any"],
     "found": [{"class": 0, "box": [1.0, 2.5, 3.0, 4.0], "score": 0.8765, "note": "duplicate"}],
     "truth": [{"class": 0, "box": [1.0, 2.0, 3.0, 4.0], "outline": [[1, 2, 4, 2, 4, 6]],
                "found_at": 0.0}],
     "jpeg": "Zm9vYg=="}]})"));
}

TEST(View, EncodesBase64) {  // the test vectors of RFC 4648
  const auto encoded = [](const char* bytes) { return to_json(Picture{.jpeg = bytes})["jpeg"]; };
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("\xff\xfe\xfd"), "//79");
}

TEST(View, ReturnsRunFoldersRelativeToStudy) {
  const Scratch scratch;
  EXPECT_FALSE(is_study(scratch.path()));
  const auto message = [&] { return testing::message_of([&] { study_view(scratch.path()); }); };
  const auto file = scratch / "study.json";
  write_file_atomically(file, "{}");
  EXPECT_TRUE(is_study(scratch.path()));
  EXPECT_THAT(message(), HasSubstr(file.string()));
  const auto folder = scratch / "a-seed-1" / "exp-1";
  const ordered_json variant = {{"name", "a"}, {"folders", {folder.string()}}};
  write_file_atomically(file, ordered_json{{"result", {{"variants", {variant}}}}}.dump());
  EXPECT_EQ(study_view(scratch.path())["study"]["variants"][0]["folders"][0], "a-seed-1/exp-1");
  write_file_atomically(file, "{\"result\": ");
  EXPECT_THAT(message(), HasSubstr(file.string()));
}

}  // namespace
}  // namespace millrace::report
