#include "millrace/models/layers/anchors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <stdexcept>

#include "tests/support/tensors.h"

namespace millrace {
namespace {

using testing::close;
using testing::same;

AnchorOptions with_cells(const std::string& cells) { return {{}, {0.5, 1, 2}, cells}; }

TEST(CellAnchors, ExactCellsHaveTheirAreaAndRatio) {
  const auto cells = cell_anchors({32, 64}, with_cells("exact"), 4);
  const auto sides = (cells.slice(1, 2) - cells.slice(1, 0, 2));
  const auto width = sides.select(1, 0), height = sides.select(1, 1);
  EXPECT_TRUE(close(width * height, at::tensor({1024, 1024, 1024, 4096, 4096, 4096}), 1e-6));
  EXPECT_TRUE(close(height / width, at::tensor({0.5, 1.0, 2.0, 0.5, 1.0, 2.0}), 1e-6));
  EXPECT_TRUE(close(cells.slice(1, 0, 2), -cells.slice(1, 2), 0));  // centred at (0, 0)
}

TEST(CellAnchors, LegacyCellsArePyFasterRcnns) {
  // The table of generate_anchors.py: base size 16, ratios 0.5 1 2, scale 8.
  const auto cells = cell_anchors({128}, with_cells("legacy"), 16);
  const auto expected =
      at::tensor({-84, -40, 99, 55, -56, -56, 71, 71, -36, -80, 51, 95}, at::kFloat);
  EXPECT_TRUE(same(cells, expected.view({3, 4})));
}

TEST(CellAnchors, RefusesAnUnknownKind) {
  EXPECT_THROW(cell_anchors({32}, with_cells("square"), 4), std::invalid_argument);
}

TEST(GridAnchors, RunOverRowsColumnsAndCells) {
  const auto cells = at::tensor({-1, -2, 1, 2, -3, -4, 3, 4}, at::kFloat).view({2, 4});
  const auto anchors = grid_anchors(cells, /*height=*/2, /*width=*/3, {10, 100}).view({2, 3, 2, 4});
  EXPECT_TRUE(same(anchors.select(0, 0).select(0, 0), cells));
  const auto moved = cells + at::tensor({200, 10, 200, 10}, at::kFloat);
  EXPECT_TRUE(same(anchors.select(0, 1).select(0, 2), moved));
}

}  // namespace
}  // namespace millrace
