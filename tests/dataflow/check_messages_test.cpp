// A stage that produces an invalid sample or batch is reported at once by name.
#include "millrace/dataflow/detection/check_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <opencv2/imgproc.hpp>
#include <string>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

void convert(Sample& sample, int colours) {
  cv::Mat other;
  cv::cvtColor(sample.image.pixels(), other, colours);
  sample.image = other;
}

/// An error that a stage can make, and a part of the message that reports it.
struct Fault {
  std::string how, told;
  void (*spoil)(Sample&);
};
const Fault kFaults[] = {
    {"grey", "1 channel of CV_8U", [](Sample& s) { convert(s, cv::COLOR_RGB2GRAY); }},
    {"alpha", "4 channels of CV_8U", [](Sample& s) { convert(s, cv::COLOR_RGB2RGBA); }},
    {"floats", "3 channels of CV_32F",
     [](Sample& s) { s.image.pixels().convertTo(s.image.pixels(), CV_32F); }},
    {"gone", "lost its image", [](Sample& s) { s.image = {}; }},
    {"cut", "12 x 12 pixels",
     [](Sample& s) { s.image = s.image.pixels()(cv::Rect(0, 0, 12, 12)).clone(); }},
    {"boxes", "crowd flags",
     [](Sample& s) {
       s.objects.boxes.push_back(Box{1, 1, 2, 2});
     }},
    {"classes", ", 0 classes, ", [](Sample& s) { s.objects.classes.clear(); }},
    {"crowd", "crowd flags", [](Sample& s) { s.objects.crowd.push_back(1); }},
    {"shapes", "crowd flags", [](Sample& s) { s.objects.segmentations.pop_back(); }},
    {"label", "class 2; valid: 0 to 1", [](Sample& s) { s.objects.classes[0] = 2; }},
    {"negative", "class -1", [](Sample& s) { s.objects.classes[0] = -1; }},
    {"nan", "has the box", [](Sample& s) { s.objects.boxes[0].x2 = NAN; }},
    {"mask", "mask of 4 x 3",
     [](Sample& s) {
       s.objects.segmentations[0] = coco::Rle{3, 4, {12}};
     }},
    {"polygon", "polygon of 4 numbers", [](Sample& s) {
       s.objects.segmentations[0] = std::vector<coco::Polygon>{{1, 2, 3, 4}};
     }}};

/// A faulty stage, as a plug-in could register it.
struct Spoiled {
  static constexpr std::string_view kName = "spoiled";
  std::string how;

  Sample operator()(Sample sample, Rng&) const {
    for (const auto& fault : kFaults)
      if (fault.how == how) fault.spoil(sample);
    return sample;
  }
  void describe(Options& o) { o.add("how", how, "which fault"); }
};
const bool spoiled = register_stage<Spoiled>("produces invalid samples");

struct TornBatch {
  static constexpr std::string_view kName = "torn_batch";
  Batch operator()(Batch batch) const {
    batch.objects.pop_back();
    return batch;
  }
  void describe(Options&) {}
};
const bool torn = register_stage<TornBatch>("loses the objects of an image");

/// Returns the digests of the batches from a pipeline with the faulty stage before or after the
/// resize.
std::vector<std::uint64_t> spoiled_digests(const TinyCoco& data, const std::string& how,
                                           bool after_resize) {
  const auto stage = "{ type = 'spoiled', how = '" + how + "' }, ";
  const auto stages = after_resize ? pipeline(kFlipAndResize + stage)
                                   : pipeline(stage + "{ type = 'resize_shortest_edge' }, ");
  return digests(*train_flow(data, stages), 6);
}

TEST(CheckedStages, ReportStageOfInvalidOutput) {
  const TinyCoco data(9);
  for (const auto& fault : kFaults)
    for (const bool after_resize : {false, true})
      EXPECT_THAT([&] { spoiled_digests(data, fault.how, after_resize); },
                  ThrowsMessage<Error>(AllOf(HasSubstr("stage 'spoiled': "), HasSubstr("picture"),
                                             HasSubstr(fault.told))))
          << fault.how;
}

TEST(CheckedStages, KeepBytesOfValidSamples) {
  const TinyCoco options(9);
  EXPECT_EQ(spoiled_digests(options, "none", /*after_resize=*/true),
            digests(*train_flow(options), 6));
}

TEST(CheckedStages, ReportInvalidBatches) {
  const TinyCoco options(9);
  const auto flow = train_flow(options, pipeline("", ", { type = 'torn_batch' }"));
  EXPECT_THAT([&] { flow->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("stage 'torn_batch': "),
                                         HasSubstr("3 images, but objects of 2"))));
}

}  // namespace
}  // namespace millrace
