#include <string>

#include "millrace/migration/detectron2/model_parts.h"
#include "millrace/migration/detectron2/readers.h"

namespace millrace::detectron2 {

void read_resnet(Translation& t) {
  const auto depth = must(t, "MODEL.RESNETS.DEPTH", {"18", "34", "50", "101"});
  t.put("model.backbone.type", words("resnet" + depth), t.read("MODEL.RESNETS.DEPTH"));
  const bool has_bottlenecks = depth == "50" || depth == "101";
  if (has_bottlenecks) {
    t.copy("MODEL.RESNETS.NUM_GROUPS", "model.backbone.groups");
    t.copy("MODEL.RESNETS.WIDTH_PER_GROUP", "model.backbone.width_per_group");
  } else {
    must(t, "MODEL.RESNETS.NUM_GROUPS", {"1"});
    t.read("MODEL.RESNETS.WIDTH_PER_GROUP");  // basic blocks have no groups
  }
  must(t, "MODEL.RESNETS.RES5_DILATION", {"1"});
  must(t, "MODEL.RESNETS.RES2_OUT_CHANNELS", {has_bottlenecks ? "256" : "64"});
  must(t, "MODEL.RESNETS.STEM_OUT_CHANNELS", {"64"});
  must(t, "MODEL.RESNETS.DEFORM_ON_PER_STAGE", {"[False, False, False, False]"});
  for (const auto* key : {"DEFORM_MODULATED", "DEFORM_NUM_GROUPS", "OUT_FEATURES"})
    t.read(std::string("MODEL.RESNETS.") + key);
  put_norm(t, "MODEL.RESNETS.NORM", "model.backbone.norm");
  t.copy("MODEL.BACKBONE.FREEZE_AT", "model.backbone.freeze_at");
  if (has_bottlenecks)
    t.copy("MODEL.RESNETS.STRIDE_IN_1X1", "model.backbone.stride_in_1x1");
  else
    t.read("MODEL.RESNETS.STRIDE_IN_1X1");  // basic blocks have no 1x1 to stride in
}

}  // namespace millrace::detectron2
