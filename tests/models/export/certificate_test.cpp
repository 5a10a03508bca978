// The files that `trainer export` writes, tested without an ONNX runtime.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "millrace/base/files.h"
#include "millrace/coco/masks/masks.h"
#include "tests/models/export/exported.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const SmallKind kMasks{"maskrcnn", kFewProposals + "mask.conv_dim = 8\n"};

TEST(Certificate, ContainsDetectorInputsAndOutputs) {
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  const auto model = exported(*detector, kMasks, scratch, {made_photo(120, 90, 1)});
  const auto tensors = read_safetensors(scratch / "model.certificate.safetensors");
  std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  EXPECT_THAT(by_name.at("0.image").sizes().vec(), ElementsAre(90, 120, 3));
  const auto count = by_name.at("0.scores").size(0);
  EXPECT_GT(count, 0);
  EXPECT_THAT(by_name.at("0.boxes").sizes().vec(), ElementsAre(count, 4));
  EXPECT_THAT(by_name.at("0.masks").sizes().vec(), ElementsAre(count, 90, 15));
  const auto text = nlohmann::json::parse(read_file(scratch / "model.certificate.json"));
  EXPECT_EQ(text["cases"][0]["objects"], count);
  EXPECT_EQ(text["masks"], "boxes");
  EXPECT_NO_THROW(check_certificate(model));
}

TEST(Certificate, RejectsChangedMissingAndInvalidFiles) {
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  const auto model = exported(*detector, kMasks, scratch, {made_photo(64, 64, 1)});
  auto bytes = read_file(model);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  scratch.file("model.onnx", bytes);
  MILLRACE_EXPECT_ERROR(check_certificate(model), model, "digest");
  MILLRACE_EXPECT_ERROR(check_certificate(scratch / "other.onnx"),
                        scratch / "other.certificate.json", "");
  scratch.file("model.certificate.json", "{}");
  MILLRACE_EXPECT_ERROR(check_certificate(model), scratch / "model.certificate.json",
                        "not a certificate");
}

TEST(Certificate, RejectsPathsAsFileNames) {
  const Scratch scratch;
  const auto detector = decided_detector(kMasks);
  const auto model = exported(*detector, kMasks, scratch, {made_photo(64, 64, 1)});
  const auto file = scratch / "model.certificate.json";
  const auto whole = nlohmann::json::parse(read_file(file));
  for (const std::string name : {"/model.onnx", "../model.onnx", "a/model.onnx", "..", "."})
    for (const auto* part : {"files", "tensors"}) {
      auto text = whole;
      text[part][name] = whole["files"]["model.onnx"];
      scratch.file("model.certificate.json", text.dump());
      MILLRACE_EXPECT_ERROR(check_certificate(model), file, "'" + name + "'");
    }
}

TEST(Export, RejectsSoftNms) {
  const Scratch scratch;
  const SmallKind soft{"fasterrcnn", kFewProposals + "test.nms_type = 'linear'\n"};
  const auto detector = decided_detector(soft);
  EXPECT_THAT(message_of([&] { exported(*detector, soft, scratch, {}); }),
              HasSubstr("model.test.nms_type"));
}

TEST(Export, RejectsSeveralScalesForBatches) {
  const Scratch scratch;
  const SmallKind scales{"retinanet", "test.aug_scales = [1.0, 1.5]\n"};
  const auto detector = decided_detector(scales);
  EXPECT_THAT(message_of([&] { exported(*detector, scales, scratch, {}, {.padded = true}); }),
              HasSubstr("model.test.aug_scales"));
}

class Mute final : public Detector {
 public:
  LossSums compute_losses(const Batch&, const StepInfo&) override { return {}; }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }

 private:
  Parameters parameters_;
};

TEST(Export, RejectsDetectorWithoutGraph) {
  const Scratch scratch;
  Mute detector;
  EXPECT_THAT(message_of([&] {
                exported(detector, {"mute", ""}, scratch, {});
              }),
              HasSubstr("Detector::add_nodes"));
}

}  // namespace
}  // namespace millrace::testing
