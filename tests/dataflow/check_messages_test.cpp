// A stage that leaves a sample or a batch that cannot be is named, before it costs anybody a wrong
// byte.
#include "millrace/dataflow/detection/check_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <opencv2/imgproc.hpp>
#include <string>
#include <string_view>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/detection_flows.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

using Spoil = std::function<void(Sample&)>;

void convert(Sample& sample, int colours) {
  cv::Mat other;
  cv::cvtColor(sample.image.pixels(), other, colours);
  sample.image = other;
}

/// Ways in which a stage may go wrong, and what is said of each.
struct Fault {
  Spoil spoil;
  std::string told;
};
const std::map<std::string, Fault>& faults() {
  static const std::map<std::string, Fault> all = {
      {"none", {[](Sample&) {}, ""}},
      {"grey",
       {[](Sample& s) { convert(s, cv::COLOR_RGB2GRAY); }, "has 1 channel of CV_8U, not 3"}},
      {"alpha", {[](Sample& s) { convert(s, cv::COLOR_RGB2RGBA); }, "has 4 channels of CV_8U"}},
      {"floats",
       {[](Sample& s) { s.image.pixels().convertTo(s.image.pixels(), CV_32F); },
        "has 3 channels of CV_32F"}},
      {"gone", {[](Sample& s) { s.image = {}; }, "its image is gone"}},
      {"cut",
       {[](Sample& s) { s.image = s.image.pixels()(cv::Rect(0, 0, 12, 12)).clone(); },
        "does not lie in the image of 12 x 12 pixels"}},
      {"boxes",
       {[](Sample& s) {
          s.objects.boxes.push_back({1, 1, 2, 2});
        },
        "members of its objects"}},
      {"classes", {[](Sample& s) { s.objects.classes.clear(); }, ", 0 classes, "}},
      {"crowd", {[](Sample& s) { s.objects.crowd.push_back(1); }, "members of its objects"}},
      {"shapes", {[](Sample& s) { s.objects.segmentations.pop_back(); }, "members of its objects"}},
      {"label",
       {[](Sample& s) { s.objects.classes[0] = 2; }, "object of class 2; there are 0 to 1"}},
      {"negative", {[](Sample& s) { s.objects.classes[0] = -1; }, "object of class -1"}},
      {"nan", {[](Sample& s) { s.objects.boxes[0].x2 = NAN; }, "has the box"}},
      {"mask",
       {[](Sample& s) {
          s.objects.segmentations[0] = coco::Rle{3, 4, {12}};
        },
        "has a mask of 4 x 3 pixels"}},
      {"polygon",
       {[](Sample& s) {
          s.objects.segmentations[0] = std::vector<coco::Polygon>{{1, 2, 3, 4}};
        },
        "polygon of 4 numbers"}}};
  return all;
}

/// A stage as somebody's plug-in would bring it.
struct Spoiled {
  static constexpr std::string_view kName = "spoiled";
  std::string how;

  Sample operator()(Sample sample, Rng&) const {
    faults().at(how).spoil(sample);
    return sample;
  }
  void describe(Options& o) { o.add("how", how, "which fault"); }
};
const bool spoiled = register_stage<Spoiled>("leaves samples that cannot be");

struct TornBatch {
  static constexpr std::string_view kName = "torn_batch";
  Batch operator()(Batch batch) const {
    batch.objects.pop_back();
    return batch;
  }
  void describe(Options&) {}
};
const bool torn = register_stage<TornBatch>("loses the objects of an image");

/// The digests of batches that a pipeline with the spoiled stage at this place gives.
std::vector<std::uint64_t> spoiled_digests(const TinyCoco& data, const std::string& how,
                                           bool after_resize) {
  const auto stage = "{ type = 'spoiled', how = '" + how + "' }, ";
  const auto stages = after_resize ? pipeline(kFlipAndResize + stage)
                                   : pipeline(stage + "{ type = 'resize_shortest_edge' }, ");
  const auto options = data.options();
  return digests(*start_train_flow(options, stages, open_split(options, options.train), 1), 6);
}

TEST(CheckedStages, NameTheStageThatLeavesWhatCannotBe) {
  const TinyCoco data(9);
  for (const auto& [how, fault] : faults())
    for (const bool after_resize : {false, true}) {
      SCOPED_TRACE(how);
      const auto run = [&] { return spoiled_digests(data, how, after_resize); };
      if (fault.told.empty()) continue;
      EXPECT_THAT(run, ThrowsMessage<Error>(AllOf(HasSubstr("stage 'spoiled': "),
                                                  HasSubstr("picture"), HasSubstr(fault.told))));
    }
}

TEST(CheckedStages, ChangeNoByteOfWhatIsSound) {
  const TinyCoco data(9);
  const auto options = data.options();
  EXPECT_EQ(spoiled_digests(data, "none", /*after_resize=*/true),
            digests(*start_train_flow(options, {}, open_split(options, "train2017"), 1), 6));
}

TEST(CheckedStages, LookAtBatchesToo) {
  const TinyCoco data(9);
  const auto options = data.options();
  const auto flow = start_train_flow(options, pipeline("", ", { type = 'torn_batch' }"),
                                     open_split(options, options.train), 1);
  EXPECT_THAT([&] { flow->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("stage 'torn_batch': "),
                                         HasSubstr("has 3 images, but the objects of 2"))));
}

}  // namespace
}  // namespace millrace
