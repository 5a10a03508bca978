#include "millrace/models/layers/truth_pack.h"

#include "tests/models/operators.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

void expect_same_tables(const TruthPack& found, const TruthPack& expected) {
  EXPECT_TRUE(tensors_equal(found.boxes, expected.boxes));
  EXPECT_TRUE(tensors_equal(found.labels, expected.labels));
  EXPECT_TRUE(tensors_equal(found.begins, expected.begins));
  EXPECT_TRUE(tensors_equal(found.sizes, expected.sizes));
  EXPECT_TRUE(tensors_equal(found.padded, expected.padded));
  EXPECT_TRUE(tensors_equal(found.present, expected.present));
  EXPECT_TRUE(tensors_equal(found.points, expected.points));
  EXPECT_TRUE(tensors_equal(found.polygon_begins, expected.polygon_begins));
  EXPECT_TRUE(tensors_equal(found.object_begins, expected.object_begins));
  EXPECT_EQ(found.segmentations, expected.segmentations);
  EXPECT_EQ(found.images, expected.images);
  EXPECT_EQ(found.only_polygons, expected.only_polygons);
}

TEST(TruthPack, ContainsAllObjectsExceptCrowds) {
  const auto batch = four_images();
  const auto truths = truths_of(batch);
  const auto& pack = *truths[0].pack;
  for (std::size_t i = 0; i < truths.size(); ++i) {
    const auto image = static_cast<std::int64_t>(i), count = truths[i].boxes.size(0),
               first = pack.begins[image].item<std::int64_t>();
    EXPECT_EQ(truths[i].pack, truths[0].pack);
    EXPECT_EQ(pack.begins[image + 1].item<std::int64_t>(), first + count);
    EXPECT_TRUE(tensors_equal(pack.boxes.narrow(0, first, count), truths[i].boxes));
    EXPECT_TRUE(tensors_equal(pack.labels.narrow(0, first, count), truths[i].labels));
    EXPECT_TRUE(tensors_equal(pack.padded[image].narrow(0, 0, count), truths[i].boxes));
    EXPECT_EQ(pack.present[image].sum().item<std::int64_t>(), count);
    EXPECT_TRUE(tensors_equal(pack.sizes[image], at::tensor({truths[i].width, truths[i].height,
                                                             truths[i].width, truths[i].height},
                                                            at::kFloat)));
  }
}

TEST(TruthPack, IsCreatedForTruthsWithoutPack) {
  const auto batch = four_images();
  const auto truths = truths_of(batch);
  EXPECT_EQ(pack_of(truths), truths[0].pack);
  auto bare = truths;
  for (auto& truth : bare) truth.pack = nullptr;
  expect_same_tables(*pack_of(bare), *truths[0].pack);
  // A part of the batch does not use the pack of the whole batch.
  const std::vector<Truth> part(truths.begin(), truths.begin() + 2);
  EXPECT_NE(pack_of(part), truths[0].pack);
  EXPECT_EQ(pack_of(part)->sizes.size(0), 2);
}

TEST(TruthPack, ReportsWhetherAllMasksArePolygons) {
  auto batch = small_batch();
  EXPECT_TRUE(truths_of(batch)[0].pack->only_polygons);
  batch.objects[1].segmentations[0] = std::monostate();
  EXPECT_FALSE(truths_of(batch)[0].pack->only_polygons);
  batch = small_batch();
  const coco::Polygon triangle{1, 1, 9, 1, 5, 9};
  batch.objects[0].segmentations[2] = coco::from_polygons({&triangle, 1}, 64, 96);  // the crowd
  EXPECT_TRUE(truths_of(batch)[0].pack->only_polygons);
  batch.objects[0].segmentations[0] = coco::from_polygons({&triangle, 1}, 64, 96);
  EXPECT_FALSE(truths_of(batch)[0].pack->only_polygons);
}

}  // namespace
}  // namespace millrace::testing
