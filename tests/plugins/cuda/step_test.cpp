// A detector's training step on a GPU against the CPU's, and how batches come there.
#include <ATen/ops/isfinite.h>
#include <ATen/ops/randn.h>

#include <cstring>
#include <map>

#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/precision.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/small_batch.h"
#include "tests/plugins/cuda/on_a_gpu.h"

namespace millrace::testing {
namespace {

const at::Device kGpu(at::kCUDA, 0);

/// Gives batches of `make`, without end.
class Made final : public DataFlow<Batch> {
 public:
  explicit Made(std::function<Batch()> make) : make_(std::move(make)) {}
  std::optional<Delivery<Batch>> next() override { return Delivery<Batch>{make_(), {}, 0, 0, 1}; }
  std::int64_t epoch_size() const override { return 2; }
  FlowReport report() const override { return {}; }

 private:
  const std::function<Batch()> make_;
};

struct Model {
  std::string kind, more, norm;
  friend void PrintTo(const Model& one, std::ostream* out) {
    *out << one.kind << " " << one.norm << " " << one.more;
  }
};

struct Taken {
  std::map<std::string, double> losses;
  std::map<std::string, at::Tensor> gradients;  // on the CPU
};

/// Losses of the small batch and their gradients.
Taken take_step(const Model& of, at::Device device, at::ScalarType type = at::kFloat) {
  const auto model = small_detector(of.kind, of.more, of.norm, device);
  const auto flow = upload_ahead(std::make_unique<Made>(small_batch), device);
  const auto batch = flow->next()->value;
  Taken taken;
  at::Tensor total;
  {
    const ComputeIn precision(type, device.type());
    for (const auto& [name, loss] : model->losses(batch, {.seed = 3})) {
      taken.losses[name] = loss.item<double>();
      total = total.defined() ? total + loss : loss;
    }
  }
  total.backward();
  for (const auto& parameter : model->parameters())
    if (const auto& gradient = parameter.value.grad(); gradient.defined()) {
      EXPECT_EQ(gradient.scalar_type(), at::kFloat) << parameter.name;
      taken.gradients[parameter.name] = gradient.cpu();
    }
  return taken;
}

class StepOnAGpu : public OnAGpu, public ::testing::WithParamInterface<Model> {};

TEST_P(StepOnAGpu, HasTheLossesAndGradientsOfTheCpu) {
  const auto there = take_step(GetParam(), kGpu), here = take_step(GetParam(), at::kCPU);
  ASSERT_EQ(there.losses.size(), here.losses.size());
  for (const auto& [name, loss] : here.losses)
    EXPECT_NEAR(there.losses.at(name), loss, 1e-4 * std::max(1.0, std::abs(loss))) << name;
  ASSERT_EQ(there.gradients.size(), here.gradients.size());
  for (const auto& [name, gradient] : here.gradients)
    EXPECT_TRUE(close(there.gradients.at(name), gradient, 1e-3)) << name;
}

TEST_P(StepOnAGpu, HasTheSameBytesEachTime) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const auto first = take_step(GetParam(), kGpu), second = take_step(GetParam(), kGpu);
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/true);
  EXPECT_EQ(first.losses, second.losses);
  for (const auto& [name, gradient] : first.gradients)
    EXPECT_TRUE(same(second.gradients.at(name), gradient)) << name;
}

TEST_P(StepOnAGpu, IsFiniteInHalves) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto taken = take_step(GetParam(), kGpu, type);
    for (const auto& [name, loss] : taken.losses)
      EXPECT_TRUE(std::isfinite(loss)) << type << " " << name;
    for (const auto& [name, gradient] : taken.gradients)
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << type << " " << name;
  }
}

std::vector<Model> models() {
  std::vector<Model> all;
  for (const auto& [kind, more] : small_kinds()) all.push_back({kind, more, "frozen_bn"});
  all.push_back({"retinanet", "", "sync_bn"});  // without ranks: batch norm
  return all;
}

INSTANTIATE_TEST_SUITE_P(Detectors, StepOnAGpu, ::testing::ValuesIn(models()), [](const auto& one) {
  return one.param.kind + std::to_string(one.index);
});

TEST_F(OnAGpu, StepsGoOnAsOnTheCpu) {
  const auto train = [](at::Device device) {
    const auto model =
        small_detector("maskrcnn", kFewRegions + "mask.conv_dim = 8\n", "frozen_bn", device);
    TrainingStep step(*model, {}, {}, Cluster::alone());
    const auto flow = upload_ahead(std::make_unique<Made>(small_batch), device);
    LossScale scale;
    std::vector<double> losses;
    for (int i = 0; i < 3; ++i) {
      const auto batch = flow->next()->value;
      for (const auto& [name, value, kind] :
           step({&batch, 1}, {.seed = 3, .step = i}, 0.01, scale).scalars)
        if (name == "loss") losses.push_back(value);
    }
    return losses;
  };
  const auto there = train(kGpu), here = train(at::kCPU);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_NEAR(there[i], here[i], 1e-3 * here[i]) << "step " << i;
}

TEST_F(OnAGpu, BatchesComeWholeThoughTheirMemoryIsUsedAgainAtOnce) {
  make_batches_for(kGpu);  // page-locked, so that copies do not wait
  constexpr int kSide = 1024;
  constexpr std::size_t kBytes = 4UL * kSide * kSide * 3;
  std::uint8_t made = 0;
  // Each batch overwrites memory that an earlier one has given back.
  const auto flow = upload_ahead(std::make_unique<Made>([&] {
                                   Batch batch{.height = kSide, .width = kSide};
                                   batch.images.resize(4);
                                   batch.objects.resize(4);
                                   batch.pixels = batch_memory().acquire(kBytes);
                                   std::memset(batch.pixels.get(), ++made, kBytes);
                                   return batch;
                                 }),
                                 kGpu);
  const auto work = at::randn({4096, 4096}, at::TensorOptions(at::kFloat).device(kGpu));
  std::vector<at::Tensor> differ;
  for (int i = 1; i <= 100; ++i) {
    const auto batch = flow->next()->value;
    auto busy = work;
    for (int k = 0; k < 4; ++k) busy = busy.matmul(work);  // the step is behind its batches
    const auto pixels = pixels_on(batch, kGpu);
    EXPECT_EQ(pixels.device(), kGpu);
    differ.push_back(pixels.ne(i).sum());
  }
  for (std::size_t i = 0; i < differ.size(); ++i)
    EXPECT_EQ(differ[i].item<std::int64_t>(), 0) << "batch " << i + 1;
  EXPECT_LT(batch_memory().bytes(), 20 * kBytes) << "it is used again";
  set_batch_memory(BufferPool());
}

}  // namespace
}  // namespace millrace::testing
