#include <string>

#include "millrace/base/errors.h"
#include "millrace/migration/mmdetection/model_parts.h"
#include "millrace/migration/mmdetection/readers.h"

namespace millrace::mmdetection {

bool read_neck(Translation& t, bool retina) {
  const std::string path = "model.neck";
  if (!t.look(path))
    throw ConfigError(t.look("model").where() +
                      ": no neck: the models here have a feature pyramid (FPN)");
  must(t, path + ".type", {"FPN"});
  t.read(path + ".in_channels"), t.read(path + ".start_level");
  t.copy(path + ".out_channels", "model.fpn.out_channels");
  t.expect(path + ".num_outs", literal(std::int64_t{5}), "the pyramid has five levels");
  if (const auto found = t.read(path + ".conv_cfg")) found.fail("plain convolutions only");
  const auto norm = norm_of(t, path);
  t.put("model.fpn.norm", words(norm), t.look(path));
  const auto extra = t.read(path + ".add_extra_convs");
  if (!retina) {
    if (extra) t.leave_out(extra, "P6 of a two-stage detector is pooled from P5");
    return norm != "none";
  }
  if (extra && extra.need().type_name() == "a string" && extra.text() == "on_output")
    t.put("model.fpn.p6_from", words("p5"), extra);
  else if (extra && extra.need().type_name() == "a string" && extra.text() == "on_lateral")
    t.leave_out(extra, "P6 is made from C5 or P5: model.fpn.p6_from");
  t.expect(path + ".relu_before_extra_convs", literal(true), "P7 is made from ReLU(P6)");
  return norm != "none";
}

}  // namespace millrace::mmdetection
