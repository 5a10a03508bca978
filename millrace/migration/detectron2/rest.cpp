#include <algorithm>
#include <string>

#include "millrace/migration/detectron2/defaults.h"
#include "millrace/migration/detectron2/parts.h"

namespace millrace::detectron2 {
namespace {

/// Keys that its other models read: without an effect on those that we have.
struct Other {
  const char* path;
  const char* reason;
};
constexpr Other kOthers[] = {
    {"MODEL.ROI_KEYPOINT_HEAD", "keypoints: no detector here finds them"},
    {"MODEL.SEM_SEG_HEAD", "semantic segmentation: no detector here does it"},
    {"MODEL.PANOPTIC_FPN", "panoptic segmentation: no detector here does it"},
    {"TEST.KEYPOINT_OKS_SIGMAS", "keypoints: no detector here finds them"},
    {"GLOBAL", "read by nothing in detectron2"},
};

/// What a recipe says and no part has read. `known`: the keys that there are.
void note_rest_of(Translation& t, const Value& known, const Value& tree, const std::string& path) {
  for (const auto& [key, value] : tree.dict()) {
    const auto at = path.empty() ? key : path + "." + key;
    const bool is_other =
        std::ranges::any_of(kOthers, [&](const Other& one) { return at == one.path; });
    if (is_other) continue;
    if (value.is_dict())
      note_rest_of(t, known, value, at);
    else
      t.leave_out_rest(at, known.at_path(at) ? "without an effect on this model"
                                             : "no key of detectron2 0.6 itself: code adds it");
  }
}

}  // namespace

void note_rest(Translation& t, const Value& recipe) {
  for (const auto& other : kOthers)
    if (recipe.at_path(other.path)) t.leave_out_rest(other.path, other.reason);
  note_rest_of(t, default_tree(), recipe, "");
}

}  // namespace millrace::detectron2
