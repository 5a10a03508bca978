#include "millrace/models/layers/anchors.h"

#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

const std::vector<double> kRatios = {0.5, 1, 2};

TEST(CellAnchors, ExactCellsHaveTheirAreaAndRatio) {
  const auto cells = cell_anchors({32, 64}, kRatios, "exact", 4);
  const auto sides = (cells.slice(1, 2) - cells.slice(1, 0, 2));
  const auto width = sides.select(1, 0), height = sides.select(1, 1);
  EXPECT_TRUE(close(width * height, at::tensor({1024, 1024, 1024, 4096, 4096, 4096}), 1e-6));
  EXPECT_TRUE(close(height / width, at::tensor({0.5, 1.0, 2.0, 0.5, 1.0, 2.0}), 1e-6));
  EXPECT_TRUE(close(cells.slice(1, 0, 2), -cells.slice(1, 2), 0));  // centred at (0, 0)
}

TEST(CellAnchors, LegacyCellsArePyFasterRcnns) {
  // The table of generate_anchors.py: base size 16, ratios 0.5 1 2, scale 8.
  EXPECT_TRUE(same(cell_anchors({128}, kRatios, "legacy", 16),
                   boxes_of({-84, -40, 99, 55, -56, -56, 71, 71, -36, -80, 51, 95})));
}

TEST(GridAnchors, RunOverRowsColumnsAndCells) {
  const auto cells = boxes_of({-1, -2, 1, 2, -3, -4, 3, 4});
  const auto anchors = grid_anchors(cells, /*height=*/2, /*width=*/3, {10, 100}).view({2, 3, 2, 4});
  EXPECT_TRUE(same(anchors[0][0], cells));
  EXPECT_TRUE(same(anchors[1][2], cells + boxes_of({200, 10, 200, 10})));
}

}  // namespace
}  // namespace millrace::testing
