#include "millrace/doctor/check_samples.h"

#include <utility>

#include "millrace/base/errors.h"
#include "millrace/dataflow/stages/decode.h"
#include "millrace/doctor/check_each.h"

namespace millrace {
namespace {

constexpr coco::FindingKind kUnusable{
    "sample-unusable", coco::Severity::error, "samples that cannot be used",
    "the image is skipped (data.on_error); training stops where data.max_skipped is passed"};

}  // namespace

void check_samples(const Source<Sample>& source, bool decode, coco::Findings& findings,
                   const std::function<void()>& on_sample) {
  // At the least size that the decoder can give: it goes through all data just the same.
  const Decode decoder{.short_side = 1};
  const auto count = static_cast<std::size_t>(source.size());
  coco::check_each(count, findings, [&](std::size_t i, coco::Findings& part) {
    try {
      auto sample = source[static_cast<std::int64_t>(i)];
      if (decode) decoder(std::move(sample));
    } catch (const DataError& problem) {
      part.add(kUnusable, [&] { return coco::FindingExample{.what = problem.what()}; });
    }
    on_sample();
  });
}

}  // namespace millrace
