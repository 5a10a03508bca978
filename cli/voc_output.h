// Pascal VOC's metrics beside COCO's, in `eval` and `coco-eval`.
#pragma once

#include "millrace/cli/command.h"
#include "millrace/coco/evaluation/voc.h"

namespace millrace::cli {

inline void add_voc_flag(CLI::App& command, bool& flag) {
  command.add_flag("--voc", flag,
                   "also compute Pascal VOC's box AP at an IoU of 0.5: area under the curve (since "
                   "2010) and eleven points (2007)");
}

inline Json voc_json(const coco::VocEvaluation& voc) {
  Json json = {{"map", voc.map}, {"map_2007", voc.map_11}};
  for (const auto& one : voc.classes) {
    json["category_ids"].push_back(one.category_id);
    json["category_ap"].push_back(one.ap);
    json["category_ap_2007"].push_back(one.ap_11);
  }
  return json;
}

}  // namespace millrace::cli
