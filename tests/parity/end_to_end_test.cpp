// With weights trained by torchvision, `trainer eval` returns torchvision's detections. The test
// takes minutes, so it is labelled slow.
#include <algorithm>
#include <cmath>

#include "tests/cli/trainer.h"
#include "tests/support/data.h"
#include "tests/support/python.h"

namespace millrace::testing {
namespace {

using EndToEndParity = Trainer;

double iou(const Json& a, const Json& b) {
  const auto x = [](const Json& box, int axis) { return box[axis].get<double>(); };
  const auto common = [&](int axis) {
    return std::max(0.0, std::min(x(a, axis) + x(a, axis + 2), x(b, axis) + x(b, axis + 2)) -
                             std::max(x(a, axis), x(b, axis)));
  };
  const double both = common(0) * common(1);
  return both / (x(a, 2) * x(a, 3) + x(b, 2) * x(b, 3) - both);
}

/// Tolerances for a set of photos.
struct Closeness {
  std::string set;
  double ap, iou, score;
};

/// Returns the detections in `some` with a score above 1/2 that cannot be paired with a detection
/// in `others` for the same image and category. Each detection is used in at most one pair.
std::vector<Json> without_partner(const Json& some, const Json& others, const Closeness& close) {
  std::vector<Json> alone;
  std::vector<bool> taken(others.size());
  for (const auto& one : some) {
    if (one["score"] <= 0.5) continue;
    std::size_t i = 0;
    for (; i < others.size(); ++i)
      if (!taken[i] && one["image_id"] == others[i]["image_id"] &&
          one["category_id"] == others[i]["category_id"] &&
          std::abs(one["score"].get<double>() - others[i]["score"].get<double>()) <= close.score &&
          iou(one["bbox"], others[i]["bbox"]) > close.iou)
        break;
    if (i < others.size())
      taken[i] = true;
    else
      alone.push_back(one);
  }
  return alone;
}

/// Photos of the model's input size, and photos that are resized. We round resized pixels to
/// integers and torchvision does not, which moves boxes slightly and changes single mask pixels.
const Closeness kSets[] = {{"sized", 0.002, 0.99, 1e-3}, {"photos", 0.02, 0.95, 0.02}};

TEST_F(EndToEndParity, MatchesTorchvisionApAndDetections) {
  MILLRACE_NEEDS_DATA("coco_mini");
  MILLRACE_NEEDS_DATA("weights");
  MILLRACE_NEEDS_DATA("goldens/scripts");
  MILLRACE_NEEDS_PYTHON("torchvision, safetensors.torch, pycocotools.mask");
  ASSERT_EQ(run_python("tests/parity/overfit_torchvision.py '" + data_folder().string() + "' '" +
                       in_folder("trained").string() + "'"),
            0);

  for (const auto& close : kSets) {
    SCOPED_TRACE(close.set);
    const auto file = [&](const std::string& ending) {
      return in_folder("trained") / (close.set + ending);
    };
    const auto eval = trainer({"eval", file(".toml").string(), "--weights",
                               (in_folder("trained") / "model.safetensors").string(), "--json",
                               "--out", file(".ours.json").string()});
    ASSERT_EQ(eval.exit_code, 0) << eval.err;
    const auto expected = read_json(file(".ap.json"));
    for (const std::string kind : {"bbox", "segm"}) {
      EXPECT_GT(expected[kind]["AP"], 0.2) << kind;
      EXPECT_NEAR(eval.json()[kind]["stats"][0].get<double>(), expected[kind]["AP"], close.ap)
          << kind;
    }
    const auto ours = read_json(file(".ours.json")), theirs = read_json(file(".detections.json"));
    EXPECT_THAT(without_partner(theirs, ours, close), ::testing::IsEmpty());
    EXPECT_THAT(without_partner(ours, theirs, close), ::testing::IsEmpty());
  }
}

}  // namespace
}  // namespace millrace::testing
