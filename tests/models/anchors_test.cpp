#include "millrace/models/layers/anchors.h"

#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

const std::vector<double> kRatios = {0.5, 1, 2};

TEST(CellAnchors, KeepAreaAndRatioIfExact) {
  const auto cells = cell_anchors({32, 64}, kRatios, AnchorRounding::exact, 4);
  const auto sides = (cells.slice(1, 2) - cells.slice(1, 0, 2));
  const auto width = sides.select(1, 0), height = sides.select(1, 1);
  EXPECT_TRUE(
      tensors_close(width * height, at::tensor({1024, 1024, 1024, 4096, 4096, 4096}), 1e-6));
  EXPECT_TRUE(tensors_close(height / width, at::tensor({0.5, 1.0, 2.0, 0.5, 1.0, 2.0}), 1e-6));
  EXPECT_TRUE(tensors_close(cells.slice(1, 0, 2), -cells.slice(1, 2), 0));  // centred on (0, 0)
}

TEST(CellAnchors, MatchPyFasterRcnnWhenLegacy) {
  // The table of py-faster-rcnn's generate_anchors.py: base size 16, ratios 0.5 1 2, scale 8.
  EXPECT_TRUE(tensors_equal(cell_anchors({128}, kRatios, AnchorRounding::legacy, 16),
                            boxes_of({-84, -40, 99, 55, -56, -56, 71, 71, -36, -80, 51, 95})));
}

TEST(GridAnchors, AreOrderedByRowAndColumn) {
  const auto cells = boxes_of({-1, -2, 1, 2, -3, -4, 3, 4});
  const auto anchors = grid_anchors(cells, /*height=*/2, /*width=*/3, {10, 100}).view({2, 3, 2, 4});
  EXPECT_TRUE(tensors_equal(anchors[0][0], cells));
  EXPECT_TRUE(tensors_equal(anchors[1][2], cells + boxes_of({200, 10, 200, 10})));
}

TEST(AnchorGrids, HaveAllSizesOnOneMap) {
  const PyramidAnchors options{.sizes = {32, 128}, .aspect_ratios = {0.5, 1, 2}, .one_map = true};
  EXPECT_EQ(options.cell_count(), 6);
  const auto grid = AnchorGrids(options, /*first_stride=*/16)({at::zeros({1, 8, 2, 3})}, {32, 48});
  EXPECT_EQ(grid.counts, std::vector<std::int64_t>{2 * 3 * 6});
  const auto cell = cell_anchors({32, 128}, {0.5, 1, 2}, AnchorRounding::exact, 16);
  EXPECT_TRUE(tensors_equal(grid.anchors, grid_anchors(cell, 2, 3, {16, 16})));
  EXPECT_TRUE(tensors_equal(grid.anchors[1], at::tensor({-16.F, -16.F, 16.F, 16.F})));
}

TEST(AnchorGrids, MatchEachLevelAfterImageSizeChanges) {
  for (const auto stride : {AnchorStride::level, AnchorStride::grid}) {
    const PyramidAnchors options{.sizes = {8, 16, 32, 48, 64}, .stride = stride};
    const AnchorGrids grids(options, /*first_stride=*/4);
    const auto expect_right = [&](std::int64_t width) {
      std::vector<at::Tensor> maps, levels;
      for (std::size_t level = 0; level < 5; ++level) {
        const std::int64_t step = 4 << level;
        const auto h = (64 + step - 1) / step, w = (width + step - 1) / step;
        maps.push_back(at::zeros({1, 1, h, w}));
        const bool by_grid = options.stride == AnchorStride::grid;
        levels.push_back(grid_anchors(
            cell_anchors({options.sizes[level]}, options.aspect_ratios, AnchorRounding::exact,
                         double(step)),
            h, w, {double(by_grid ? 64 / h : step), double(by_grid ? width / w : step)}));
      }
      const auto grid = grids(maps, {64, width});
      EXPECT_TRUE(tensors_equal(grid.anchors, at::cat(levels)));
      ASSERT_EQ(grid.counts.size(), 5U);
      for (std::size_t level = 0; level < 5; ++level)
        EXPECT_EQ(grid.counts[level], levels[level].size(0));
    };
    for (const std::int64_t width : {64, 96, 64, 33, 70, 71, 72, 128, 160, 192, 224, 256, 64, 96})
      expect_right(width);
  }
}

}  // namespace
}  // namespace millrace::testing
