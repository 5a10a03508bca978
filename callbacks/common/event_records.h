// TensorBoard's event files: TFRecords of TensorFlow's Event messages (event.proto), written
// without a protobuf library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct EventTime {
  std::int64_t step = 0;
  double wall_s = 0;  // wall-clock time, seconds since 1970
};

/// A histogram whose bucket i counts the values in (limits[i - 1], limits[i]].
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits, counts;  // upper limits and counts by bucket, of equal length
};

/// Returns the histogram of the finite values, in 30 buckets of equal width.
Histogram histogram_of(std::span<const float> values);

// Each function returns one complete record: length, checksum, event, checksum.

/// First record of a file.
std::string version_record(double wall_s);
/// Record that invalidates this step and later ones in other files.
std::string restart_record(const EventTime& at);
std::string scalar_record(const EventTime& at, std::string_view name, double value);
std::string image_record(const EventTime& at, std::string_view name, std::string_view jpeg,
                         int width, int height);
std::string histogram_record(const EventTime& at, std::string_view name, const Histogram& values);

}  // namespace millrace
