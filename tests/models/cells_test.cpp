// Helpers for anchor-free heads: the cells of a feature map, and boxes as centre, width and height.
#include "millrace/models/layers/cells.h"

#include <ATen/TensorOperators.h>

#include "millrace/models/ops/box_formats.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

TEST(Cells, KeepOrderOfFlattenedMap) {
  EXPECT_TRUE(tensors_equal(cells_of(2, 3), at::tensor({0.F, 0.F, 1.F, 0.F, 2.F, 0.F,  //
                                                        0.F, 1.F, 1.F, 1.F, 2.F, 1.F})
                                                .view({6, 2})));
  EXPECT_EQ(cells_of(0, 3).size(0), 0);
}

TEST(BoxFormats, DescribeSameBoxes) {
  EXPECT_TRUE(tensors_equal(to_corners(boxes_of({50, 40, 20, 60})), boxes_of({40, 10, 60, 70})));
  const auto boxes = random_boxes(200, 500, 60, 1);
  EXPECT_TRUE(tensors_close(to_corners(to_centers(boxes)), boxes, 1e-6));
  EXPECT_TRUE(tensors_equal(to_corners(boxes.view({10, 20, 4})).view({-1, 4}), to_corners(boxes)));
}

}  // namespace
}  // namespace millrace::testing
