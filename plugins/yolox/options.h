// The options of [model] type = "yolox".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/base/options.h>
#include <millrace/models/layers/layers.h>
#include <millrace/models/layers/results.h>

namespace millrace::yolox {

/// The published networks.
enum class NetworkSize { nano, tiny, s, m, l, x };
inline std::vector<std::string> value_names(NetworkSize) {
  return {"nano", "tiny", "s", "m", "l", "x"};
}

/// Defaults are those of YOLOX-s; `size` sets those of the other published networks.
struct YoloxOptions {
  NetworkSize size = NetworkSize::s;
  double depth = 0.33;  // factor of the number of bottlenecks, 3, 9, 9, 3
  double width = 0.5;   // factor of the channels, 64 .. 1024
  bool depthwise = false;
  Norm norm = Norm::sync_bn;

  Options::Ints random_size;
  double l1_from = -1;

  double score_thresh = 0.01;
  double nms_thresh = 0.65;
  std::int64_t detections_per_img = 1000;  // COCO evaluates up to 100 per class
  BoxScaling boxes = BoxScaling::exact;

  void describe(Options& o);
  /// Throws ConfigError for an invalid range of sizes.
  void check(const Config& table) const;

  /// Returns the defaults of the `size` in the [model] table.
  template <class T>
  static T defaults_for(const Config& table) {
    T defaults;
    const auto* size = table.is_table() ? table.find("size") : nullptr;
    const auto* name = size ? std::get_if<std::string>(&size->data) : nullptr;
    if (const auto known = name ? named_value<NetworkSize>(*name) : std::nullopt)
      defaults.use(*known);
    return defaults;
  }

 private:
  void use(NetworkSize published);
};

}  // namespace millrace::yolox
