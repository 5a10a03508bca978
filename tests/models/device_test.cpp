// On a device other than the CPU, a detector has the same losses, gradients, steps and detections,
// and accesses no memory of the wrong device.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "millrace/models/backbones/pyramid.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/ops/upload.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/operators.h"
#include "tests/models/other_device.h"
#include "tests/models/small_batch.h"
#include "tests/support/mask_targets.h"

namespace millrace::testing {
namespace {

/// Yields one batch `times` times.
class Again final : public DataFlow<Batch> {
 public:
  Again(Batch batch, int times) : batch_(std::move(batch)), times_(times) {}
  std::optional<Delivery<Batch>> next() override {
    if (times_ == 0) throw std::runtime_error("no more batches");
    return Delivery<Batch>{batch_, {}, 0, 0, --times_};
  }
  std::int64_t epoch_size() const override { return 2; }
  FlowReport report() const override { return {}; }

 private:
  const Batch batch_;
  int times_;
};

/// Returns the batch with its pixels on the device. The host copy is zeroed, since no code should
/// read it.
Batch uploaded(Batch batch, at::Device device) {
  batch = upload_ahead(std::make_unique<Again>(batch, 1), device)->next()->value;
  std::fill_n(batch.pixels.get(), batch.bytes(), std::uint8_t{0});
  return batch;
}

TEST(Normalize, PadsUploadedImagesOnDevice) {
  const at::Device there(kOtherDevice, 0);
  const auto batch = small_batch();
  const cv::Size padded(batch.width + 32, batch.height + 64);
  const auto alone = normalize(batch, {}), larger = normalize(batch, {}, at::kCPU, padded);
  EXPECT_TRUE(at::equal(larger, at::constant_pad_nd(alone, {0, 32, 0, 64})));
  const auto on_device = uploaded(batch, there);
  EXPECT_TRUE(at::equal(normalize(on_device, {}, there).cpu(), alone));
  EXPECT_TRUE(at::equal(normalize(on_device, {}, there, padded).cpu(), larger));
}

TEST(Normalize, UploadsBatchOnceForAllParts) {
  const at::Device there(kOtherDevice, 0);
  auto batch = small_batch();
  batch.divisor = 16;
  batch.images[0].width = 40;  // padded to 48 if it is alone
  std::vector<at::Tensor> expected;
  for (const auto& [part, places] : split_by_padded_size(batch))
    expected.push_back(normalize(part, {}));
  EXPECT_EQ(expected.size(), 2);
  const auto on_device = uploaded(batch, there);
  auto parts = split_by_padded_size(on_device);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    take_pixels_of(on_device, parts[i]);
    EXPECT_TRUE(at::equal(normalize(parts[i].batch, {}, there).cpu(), expected[i])) << i;
  }
}

struct Trained {
  std::vector<StepMetrics> scalars;
  std::vector<at::Tensor> values;
  std::vector<std::vector<DetectedObject>> found;
};

Trained train(const std::string& kind, const std::string& more, at::Device device,
              const TrainOptions& options = {}) {
  const auto model = small_detector(kind, more, "frozen_bn", device);
  TrainingStep step(*model, options, {}, Cluster::alone());
  const auto flow = upload_ahead(std::make_unique<Again>(small_batch(), 3), device);
  Trained result;
  LossScale scale;
  for (int i = 0; i < 3; ++i) {
    const auto batch = flow->next()->value;
    Metrics metrics;
    result.scalars.push_back(
        step({&batch, 1}, {.seed = 3, .step = i, .metrics = &metrics}, 0.01, scale).scalars);
  }
  EXPECT_THROW(flow->next(), std::runtime_error);
  for (const auto& parameter : model->parameters()) {
    EXPECT_EQ(parameter.value.device().type(), device.type());
    result.values.push_back(parameter.value.detach().cpu());
  }
  result.found = model->detect(small_batch());
  return result;
}

void expect_like(const Trained& there, const Trained& here) {
  ASSERT_EQ(there.scalars.size(), here.scalars.size());
  for (std::size_t i = 0; i < here.scalars.size(); ++i)
    for (std::size_t k = 0; k < here.scalars[i].size(); ++k) {
      const auto& [name, value, figure_kind] = here.scalars[i][k];
      EXPECT_EQ(there.scalars[i][k].name, name);
      EXPECT_NEAR(there.scalars[i][k].value, value, 1e-6 * std::max(1.0, std::abs(value))) << name;
    }
  for (std::size_t i = 0; i < here.values.size(); ++i)
    EXPECT_LT((there.values[i] - here.values[i]).abs().max().item<double>(), 1e-5) << i;
  ASSERT_EQ(there.found.size(), here.found.size());
  for (std::size_t i = 0; i < here.found.size(); ++i) {
    expect_same_objects(there.found[i], here.found[i], 1e-4, 1e-2);
    for (std::size_t d = 0; d < here.found[i].size(); ++d)
      EXPECT_EQ(there.found[i][d].mask, here.found[i][d].mask);
  }
}

class OtherDevice : public ::testing::TestWithParam<SmallKind> {};

TEST_P(OtherDevice, MatchesCpuInTrainingAndDetection) {
  const auto& [kind, more] = GetParam();
  const auto before = copies_on_own_streams();
  const auto there = train(kind, more, {kOtherDevice, 0}), here = train(kind, more, at::kCPU);
  EXPECT_EQ(copies_on_own_streams(), before + 3) << "each batch is uploaded ahead";
  expect_like(there, here);
}

TEST_P(OtherDevice, MatchesCpuWithMicroBatches) {
  const auto& [kind, more] = GetParam();
  TrainOptions options;
  options.micro_batch = 1;
  const auto before = copies_on_own_streams();
  const auto there = train(kind, more, {kOtherDevice, 0}, options),
             here = train(kind, more, at::kCPU, options);
  EXPECT_EQ(copies_on_own_streams(), before + 3) << "each batch is copied once for all its parts";
  expect_like(there, here);
}

TEST(MaskTargetsOnDevice, MatchCpu) {
  const coco::Polygon triangle{10, 10, 90, 20, 60, 80};
  const std::vector<coco::Segmentation> shapes{std::vector<coco::Polygon>{triangle},
                                               coco::from_polygons({&triangle, 1}, 100, 100)};
  const std::vector<const coco::Segmentation*> each{&shapes[1], &shapes[0], &shapes[1]};
  const auto boxes = boxes_of({5, 5, 50, 70, 20, 0, 95, 95, 30, 30, 60, 60});
  for (const auto kind : {MaskTarget::binary, MaskTarget::soft}) {
    const auto found = mask_targets(each, boxes.to(kOtherDevice), 28, kind, 100, 100);
    EXPECT_EQ(found.device().type(), kOtherDevice);
    EXPECT_TRUE(tensors_equal(found.cpu(), mask_targets(each, boxes, 28, kind, 100, 100)))
        << value_name(kind);
  }
}

TEST(Uploaded, CopiesAllTypesInOneUpload) {
  const std::vector<at::Tensor> values{at::tensor({1.5F, 2.5F, 3.5F}),
                                       at::tensor({1, 2, 3}, at::kLong).view({3, 1}),
                                       at::zeros({0, 4}),
                                       at::tensor({0.25, 0.5}, at::kDouble),
                                       at::tensor({1, 0, 1}, at::kByte).to(at::kBool),
                                       at::tensor({1, 2, 3, 4}, at::kFloat).view({2, 2}).t()};
  take_traffic();
  const auto there = millrace::uploaded(values, at::Device(kOtherDevice, 0));
  const auto traffic = take_traffic();
  EXPECT_EQ(traffic.uploads, 1);
  EXPECT_EQ(traffic.waits(), 0);
  ASSERT_EQ(there.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(there[i].device().type(), kOtherDevice);
    EXPECT_TRUE(tensors_equal(there[i].cpu(), values[i])) << i;
  }
}

TEST(DeviceWithoutKernels, IsNamedInError) {
  EXPECT_THAT([] { small_detector("retinanet", "", "frozen_bn", at::kCUDA); },
              ::testing::ThrowsMessage<ConfigError>(::testing::HasSubstr("device 'cuda'")));
}

const std::string kMasks = kFewProposals + kEverything + "mask.conv_dim = 8\n";

INSTANTIATE_TEST_SUITE_P(
    Detectors, OtherDevice,
    ::testing::Values(SmallKind{"maskrcnn", kMasks},
                      SmallKind{"maskrcnn", kMasks + "style = 'torchvision'\n"},
                      SmallKind{"cascadercnn", kMasks + "masks = true\n"},
                      SmallKind{"retinanet", kEverything + "head.norm = 'gn'\n"},
                      SmallKind{"retinanet",
                                kEverything + "test.nms_type = 'gaussian'\ntest.aug_flip = true\n"},
                      SmallKind{"centers", kEverything}));

}  // namespace
}  // namespace millrace::testing
