#include "millrace/callbacks/common/event_records.h"

#include <algorithm>
#include <cmath>

#include "millrace/base/proto_message.h"
#include "millrace/dataflow/store/remote/tf_record.h"

namespace millrace {
namespace {

constexpr std::size_t kBuckets = 30;

// Field numbers of event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5 };
enum ImageField { kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4 };
enum HistogramField { kMin = 1, kMax, kCount, kSum, kSumOfSquares, kLimits, kCounts };
enum SessionField { kStatus = 1 };
constexpr int kStart = 1;  // number of the session status "start"
constexpr int kRgb = 3;    // number of the color space RGB

std::string framed(const ProtoMessage& event) { return tf_record(event.bytes()); }

ProtoMessage event_at(const EventTime& at) {
  ProtoMessage event;
  event.real(kWallTime, at.wall_s).number(kStep, at.step);
  return event;
}

std::string summary_record(const EventTime& at, const ProtoMessage& value) {
  return framed(event_at(at).message(kSummary, ProtoMessage().message(kValue, value)));
}

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  Histogram histogram;
  double count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    histogram.min = count > 0 ? std::min(histogram.min, value) : value;
    histogram.max = count > 0 ? std::max(histogram.max, value) : value;
    histogram.sum += value;
    histogram.sum_of_squares += value * value;
    count += 1;
  }
  if (count == 0) return histogram;
  const auto width = (histogram.max - histogram.min) / kBuckets;
  if (!(width > 0)) {
    histogram.limits = {histogram.max};
    histogram.counts = {count};
    return histogram;
  }
  for (std::size_t i = 1; i < kBuckets; ++i)
    histogram.limits.push_back(histogram.min + width * static_cast<double>(i));
  histogram.limits.push_back(histogram.max);
  histogram.counts.resize(kBuckets);
  for (const double value : values)
    if (std::isfinite(value)) {
      const auto bucket = static_cast<std::size_t>((value - histogram.min) / width);
      histogram.counts[std::min(bucket, kBuckets - 1)] += 1;
    }
  return histogram;
}

std::string version_record(double wall_s) {
  return framed(event_at({0, wall_s}).text(kFileVersion, "brain.Event:2"));
}

std::string restart_record(const EventTime& at) {
  return framed(event_at(at).message(kSessionLog, ProtoMessage().number(kStatus, kStart)));
}

std::string scalar_record(const EventTime& at, std::string_view name, double value) {
  return summary_record(
      at, ProtoMessage().text(kTag, name).single(kSimpleValue, static_cast<float>(value)));
}

std::string image_record(const EventTime& at, std::string_view name, std::string_view jpeg,
                         int width, int height) {
  ProtoMessage image;
  image.number(kHeight, height)
      .number(kWidth, width)
      .number(kColorspace, kRgb)
      .text(kEncoded, jpeg);
  return summary_record(at, ProtoMessage().text(kTag, name).message(kImage, image));
}

std::string histogram_record(const EventTime& at, std::string_view name, const Histogram& values) {
  double count = 0;
  for (const auto in_bucket : values.counts) count += in_bucket;
  ProtoMessage histogram;
  histogram.real(kMin, values.min)
      .real(kMax, values.max)
      .real(kCount, count)
      .real(kSum, values.sum)
      .real(kSumOfSquares, values.sum_of_squares)
      .reals(kLimits, values.limits)
      .reals(kCounts, values.counts);
  return summary_record(at, ProtoMessage().text(kTag, name).message(kHistogram, histogram));
}

}  // namespace millrace
