// Results files whose images differ from the images of the annotations are rejected.
#include <gtest/gtest.h>

#include "millrace/base/errors.h"
#include "millrace/coco/data/detections.h"
#include "millrace/coco/data/records.h"

namespace millrace::coco {
namespace {

/// Returns a data set with images 1 to 4, each of 100 x 60 pixels.
std::shared_ptr<const Dataset> truth() {
  Records records;
  records.add_category(1, "one");
  for (int id = 1; id <= 4; ++id) records.add_image(id, "", 100, 60);
  return assemble(std::move(records), "made");
}

Detection box_in(std::int64_t image, double x = 10, double y = 10) {
  return {.image_id = image, .category_id = 1, .bbox = Xywh{x, y, 20, 20}, .score = 0.5};
}

Detection mask_in(std::int64_t image, std::uint32_t height, std::uint32_t width) {
  Detection one = box_in(image);
  one.mask = {height, width, {height * width}};
  return one;
}

void check(const std::vector<Detection>& found) {
  require_fit(Detections(found), *truth(), "found.json");
}

TEST(ResultsFit, AcceptsResultsForSameImages) {
  EXPECT_NO_THROW(check({}));
  EXPECT_NO_THROW(check({box_in(1), box_in(2, -5, -5), box_in(99)}));
  EXPECT_NO_THROW(check({mask_in(1, 60, 100), box_in(2, 300, 10), box_in(3)}));
}

TEST(ResultsFit, RejectsMostlyUnknownImageIds) {
  EXPECT_THROW(check({box_in(1), box_in(98), box_in(99)}), Error);
}

TEST(ResultsFit, RejectsMasksOfWrongSize) {
  EXPECT_THROW(check({mask_in(1, 100, 60), mask_in(2, 100, 60), mask_in(3, 60, 100)}), Error);
}

TEST(ResultsFit, RejectsBoxesOutsideImages) {
  EXPECT_THROW(check({box_in(1, 10, 80), box_in(2, 120, 10), box_in(3)}), Error);
}

}  // namespace
}  // namespace millrace::coco
