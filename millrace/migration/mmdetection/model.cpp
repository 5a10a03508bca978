#include <string>

#include "millrace/migration/mmdetection/model_parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {

bool read_model(Translation& t, const Layout& layout) {
  const auto type = must(t, "model.type", {"FasterRCNN", "MaskRCNN", "CascadeRCNN", "RetinaNet"});
  const auto found = t.look("model.type");
  const bool masks = t.look("model.roi_head.mask_head") && type != "FasterRCNN";
  if (type == "RetinaNet") {
    t.put("model.type", words("retinanet"), found);
  } else if (type == "CascadeRCNN") {
    t.put("model.type", words("cascadercnn"), found);
    t.put("model.masks", Config::Data(masks), masks ? t.look("model.roi_head.mask_head") : found);
  } else {
    t.put("model.type", words(masks ? "maskrcnn" : "fasterrcnn"), found);
  }
  read_pixels(t, "model.data_preprocessor", "bgr_to_rgb");
  bool trains_norms = read_backbone(t);
  trains_norms |= read_neck(t, type == "RetinaNet");
  if (type == "RetinaNet") return read_retina_head(t, layout) || trains_norms;
  t.set("model.roi.level_eps", Config::Data(2.5e-7),
        "as MMDetection's 1e-6, whose regions of 56 "
        "pixels go to P2");
  read_rpn(t, layout);
  return read_roi_head(t, layout, type == "CascadeRCNN", masks) || trains_norms;
}

}  // namespace millrace::mmdetection
