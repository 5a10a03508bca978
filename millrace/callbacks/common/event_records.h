// TensorBoard's event files: records in TFRecord framing, each an Event message of TensorFlow's
// event.proto, encoded here without a protobuf library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// CRC-32C (Castagnoli), as RFC 3720 has it.
std::uint32_t crc32c(std::string_view bytes);

/// When an event was: the step, and seconds since 1970.
struct EventTime {
  std::int64_t step = 0;
  double wall_s = 0;
};

/// A distribution. Bucket i holds values above the limit before its own, up to that.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;  // of equal length
};

/// The finite ones of these values in 30 buckets of equal width.
Histogram histogram_of(std::span<const float> values);

// Each gives one whole record: length, checksum, event, checksum.

/// The first of a file.
std::string version_record(double wall_s);
/// What other files say of this step and later ones does not count.
std::string restart_record(const EventTime& at);
std::string scalar_record(const EventTime& at, std::string_view name, double value);
/// `jpeg`: the bytes of a file of that size in pixels.
std::string image_record(const EventTime& at, std::string_view name, std::string_view jpeg,
                         int width, int height);
std::string histogram_record(const EventTime& at, std::string_view name, const Histogram& values);

}  // namespace millrace
