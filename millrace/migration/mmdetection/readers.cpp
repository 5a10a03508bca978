#include "millrace/migration/mmdetection/readers.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"

namespace millrace::mmdetection {

std::string must(Translation& t, const std::string& path,
                 const std::vector<std::string>& possible) {
  const auto found = t.read(path);
  if (!found) throw ConfigError(fmt::format("{}: `{}` is missing", t.look("").place.text(), path));
  return one_of(found, found.text(), possible);
}

double real_or(Translation& t, const std::string& path, double otherwise) {
  const auto found = t.read(path);
  return found ? found.real() : otherwise;
}

bool flag_or(Translation& t, const std::string& path, bool otherwise) {
  const auto found = t.read(path);
  return found ? found.flag() : otherwise;
}

std::string text_or(Translation& t, const std::string& path, const std::string& otherwise) {
  const auto found = t.read(path);
  return found ? found.text() : otherwise;
}

std::string norm_of(Translation& t, const std::string& part) {
  const auto norm = t.read(part + ".norm_cfg");
  if (!norm) return "none";
  const auto type = text_or(t, part + ".norm_cfg.type", "");
  if (type == "GN") return "gn";
  if (type == "BN") return "bn";
  if (type == "SyncBN") return "sync_bn";
  norm.fail("the norms here are GN, BN and SyncBN");
}

void read_pixels(Translation& t, const std::string& path, const std::string& order) {
  if (!t.look(path)) return;
  t.copy(path + ".mean", "model.pixel_mean");
  t.copy(path + ".std", "model.pixel_std");
  if (const auto rgb = t.read(path + "." + order))
    t.put("model.pixel_order", words(rgb.flag() ? "rgb" : "bgr"), rgb);
  else
    t.put("model.pixel_order", words("bgr"), t.look(path), "no " + order + ": as files are read");
  t.copy(path + ".pad_size_divisor", "data.divisor");
  t.read(path + ".type"), t.read(path + ".pad_mask"), t.read(path + ".pad_value");
  t.leave_out_rest(path + ".batch_augments",
                   "a fixed size of batches is data.pad_shapes = [\"1024x1024\"]");
}

}  // namespace millrace::mmdetection
