// Compares backbones with torchvision's and timm's, loaded from their weights files and on the same
// images. Skipped if Python lacks these packages.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "millrace/models/backbones/hrfpn.h"
#include "millrace/models/backbones/hrnet.h"
#include "millrace/models/backbones/resnet.h"
#include "millrace/models/maskrcnn/regions.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/models/weights/weights.h"
#include "tests/support/python.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

struct Peer {
  std::string library, name;
  PyramidOptions options;
  // name prefixes of tensors outside the backbone
  std::vector<std::string> beside_the_trunk;
  friend void PrintTo(const Peer& peer, std::ostream* out) { *out << peer.name; }
};

std::vector<Peer> peers() {
  PyramidOptions plain{.stride_in_1x1 = false};
  auto basic = plain, next = plain, deep = plain, hrnet = plain;
  basic.backbone = BackboneType::resnet18;
  next.groups = 32;
  next.width_per_group = 4;
  deep.deep_stem = deep.avg_down = true;
  hrnet.backbone = BackboneType::hrnet_w18;
  auto deep_next = next;
  deep_next.deep_stem = deep_next.avg_down = true;
  return {{"torchvision", "resnet18", basic, {"fc."}},
          {"torchvision", "resnet50", plain, {"fc."}},
          {"torchvision", "resnext50_32x4d", next, {"fc."}},
          {"timm", "resnet50d", deep, {"fc."}},
          {"timm", "resnext50d_32x4d", deep_next, {"fc."}},
          {"timm",
           "hrnet_w18",
           hrnet,
           {"classifier.", "incre_modules.", "downsamp_modules.", "final_layer."}}};
}

class PretrainedBackbone : public ::testing::TestWithParam<Peer> {
 protected:
  void SetUp() override {
    const auto& peer = GetParam();
    if (peer.library == "timm") {
      MILLRACE_NEEDS_PYTHON("timm, safetensors.torch");
    } else {
      MILLRACE_NEEDS_PYTHON("torchvision, safetensors.torch");
    }
    folder_ = std::filesystem::temp_directory_path() / ("millrace-backbone-" + peer.name);
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(run_python("tests/parity/pretrained_backbones.py " + peer.library + " " + peer.name +
                         " '" + folder_.string() + "'"),
              0);
    for (auto& [name, tensor] : read_safetensors(folder_ / "expected.safetensors"))
      expected_[name] = tensor;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  /// Loads the backbone from both files and checks that all of it is loaded and that only known
  /// tensors are unused.
  void load(const Parameters& parameters) const {
    for (const auto* file : {"model.pth", "model.safetensors"}) {
      const auto report = load_weights(parameters, folder_ / file);
      EXPECT_THAT(report.missing, ::testing::IsEmpty()) << file;
      EXPECT_THAT(report.mismatched, ::testing::IsEmpty()) << file;
      EXPECT_FALSE(report.unused.empty()) << file;
      for (const auto& name : report.unused) {
        const auto& known = GetParam().beside_the_trunk;
        EXPECT_TRUE(
            std::ranges::any_of(known, [&](const auto& start) { return name.starts_with(start); }))
            << file << " has the unknown tensor " << name;
      }
    }
  }

  void expect_maps(const std::vector<at::Tensor>& maps, const std::string& name) {
    for (std::size_t i = 0; i < maps.size(); ++i)
      EXPECT_TRUE(tensors_close(maps[i].contiguous(), expected_.at(name + std::to_string(i)), 1e-4))
          << name << i;
  }

  std::filesystem::path folder_;
  std::map<std::string, at::Tensor> expected_;
};

INSTANTIATE_TEST_SUITE_P(ByName, PretrainedBackbone, ::testing::ValuesIn(peers()),
                         [](const auto& one) { return one.param.name; });

TEST_P(PretrainedBackbone, LoadsCompletelyAndMatchesMaps) {
  const at::NoGradGuard no_grad;
  Parameters parameters;
  const Scope root(parameters, 1), body = root / "backbone" / "body";
  const auto& options = GetParam().options;
  const auto& input = expected_.at("input");
  if (!options.is_hrnet()) {
    const ResNet resnet(body, options);
    load(parameters);
    const auto maps = resnet(input, {});
    expect_maps(maps, "map");
    const RegionPooler pooler(PoolOptions{}, resnet.last_stage());
    EXPECT_TRUE(tensors_close(pooler({maps[2]}, expected_.at("rois"), 14, {}).contiguous(),
                              expected_.at("regions"), 1e-4));
    return;
  }
  const HrNet hrnet(body, options);
  load(parameters);
  const auto maps = hrnet(input, {});
  expect_maps(maps, "map");
  Parameters of_pyramid;
  const HrFpn pyramid(Scope(of_pyramid, 1) / "fpn", hrnet.channels(), 8, {.kind = Norm::none});
  for (const auto& parameter : of_pyramid)
    at::Tensor(parameter.value).copy_(expected_.at(parameter.name));
  expect_maps(pyramid(maps, {}), "p");
}

}  // namespace
}  // namespace millrace::testing
