// Galleries: all that the script needs is in them, and their pictures are there without it.
#include "millrace/page/gallery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/page/pages.h"

namespace millrace::page {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Gallery example() {
  Gallery all{.id = "g", .categories = {"cat", "</script><b>dog"}};
  Picture picture{
      .title = "a<b>.jpg", .caption = "two", .width = 640, .height = 480, .jpeg = "pixels"};
  picture.shapes.push_back(
      {.category = 1, .score = .75, .box = {1, 2, 30, 40}, .note = "duplicate"});
  picture.shapes.push_back({.category = 0, .score = .25, .box = {5, 6, 7, 8}});
  picture.shapes.push_back({.category = 0,
                            .box = {9, 9, 9, 9},
                            .outline = "M1 1l5 0 0 5z",
                            .kind = Shape::annotated,
                            .found_at = .25});
  picture.figures = {{"F1", .5}};
  picture.tags = {"hard"};
  all.pictures = {picture, {.title = "b.jpg", .width = 10, .height = 20}};
  all.pictures[1].figures = {{"wrong", std::numeric_limits<double>::quiet_NaN()}};
  return all;
}

nlohmann::json data_of(const std::string& html) {
  const std::string mark = "<script type=\"application/json\">";
  const auto begin = html.find(mark) + mark.size();
  return nlohmann::json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

TEST(Gallery, ItsDataAreWhatItWasGiven) {
  const auto data = data_of(gallery(example()));
  EXPECT_EQ(data["categories"][1], "</script><b>dog");
  EXPECT_EQ(data["figures"], (nlohmann::json{"F1", "wrong"}));
  EXPECT_EQ(data["tags"], (nlohmann::json{"hard"}));
  const auto& first = data["pictures"][0];
  EXPECT_EQ(first["title"], "a<b>.jpg");
  EXPECT_EQ(first["shapes"][0],
            (nlohmann::json{0, 1, .75, 1., 2., 30., 40., "duplicate", "", -1.}));
  EXPECT_EQ(first["shapes"][2],
            (nlohmann::json{1, 0, 1., 9., 9., 9., 9., "", "M1 1l5 0 0 5z", .25}));
  EXPECT_EQ(first["figures"], (nlohmann::json{.5, nullptr}));
  EXPECT_EQ(data["pictures"][1]["figures"], (nlohmann::json{nullptr, nullptr}));
}

TEST(Gallery, WithoutScriptsItsPicturesAndShapesAreThere) {
  const std::string html = gallery(example());
  testing::expect_balanced(html);
  const std::string still = testing::without_code(html);
  EXPECT_THAT(still, HasSubstr("src=\"data:image/jpeg;base64,cGl4ZWxz\""));
  EXPECT_THAT(still, HasSubstr("d=\"M1.0 2.0h30.0v40.0h-30.0z\""));
  EXPECT_THAT(still, HasSubstr("d=\"M1 1l5 0 0 5z\""));
  EXPECT_THAT(still, Not(HasSubstr("M5.0 6.0")));  // its score is too low
  EXPECT_THAT(still, HasSubstr("a&lt;b&gt;.jpg"));
  EXPECT_THAT(still, HasSubstr("<span class=\"lost\" style=\"aspect-ratio: 10 / 20\">"));
}

TEST(Gallery, NothingLeavesItsQuotes) {
  Gallery all = example();
  all.pictures[0].shapes[2].outline = "M1 1\"><script>alert(1)</script>";
  all.pictures[0].title = all.pictures[0].tags[0] = "\"><img src=x onerror=alert(1)>";
  all.pictures[0].shapes[0].note = "</script><script>alert(1)</script>";
  const std::string html = gallery(all);
  testing::expect_balanced(html);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(ContainsRegex("<img src=x")));
  EXPECT_EQ(data_of(html)["pictures"][0]["shapes"][2][8], "");
}

TEST(Gallery, EqualInputGivesEqualBytes) {
  EXPECT_EQ(gallery(example()), gallery(example()));
  testing::expect_balanced(gallery({.id = "none"}));
}

}  // namespace
}  // namespace millrace::page
