#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/store/sample_cache.h"

namespace millrace {
namespace {

std::size_t bytes_of(const coco::Segmentation& shape) {
  if (const auto* mask = std::get_if<coco::Rle>(&shape))
    return mask->counts.size() * sizeof(std::uint32_t);
  std::size_t bytes = 0;
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape))
    for (const auto& polygon : *polygons) bytes += polygon.size() * sizeof(double);
  return bytes;
}

std::size_t bytes_of(const Sample& sample) {
  constexpr std::size_t kObject =
      sizeof(Box) + sizeof(std::int32_t) + sizeof(std::uint8_t) + sizeof(coco::Segmentation);
  auto bytes = sizeof(Sample) + sample.image.bytes() + sample.objects.size() * kObject;
  for (const auto& shape : sample.objects.segmentations) bytes += bytes_of(shape);
  return bytes;
}

/// Returns a copy with its own pixels, since stages write into them.
Sample copy_of(const Sample& sample) {
  auto copy = sample;
  copy.image = sample.image.clone();
  return copy;
}

class MemoryCache final : public SampleCache {
 public:
  explicit MemoryCache(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  std::optional<Sample> find(std::int64_t index) override {
    const Sample* kept = nullptr;
    {
      const std::shared_lock lock(mutex_);
      if (const auto found = kept_.find(index); found != kept_.end()) kept = &found->second;
    }
    return kept ? std::optional(copy_of(*kept)) : std::nullopt;  // stored entries do not move
  }

  void keep(std::int64_t index, const Sample& sample) override {
    if (full_) return;
    auto copy = copy_of(sample);
    const std::unique_lock lock(mutex_);
    if (full_ || kept_.contains(index)) return;
    if (bytes_ + bytes_of(copy) > max_bytes_) {
      full_ = true;
      log_info("the cache in memory is full with {}, {}", counted(std::ssize(kept_), "image"),
               byte_text(static_cast<double>(bytes_)));
      return;
    }
    bytes_ += bytes_of(copy);
    kept_.emplace(index, std::move(copy));
  }

 private:
  const std::size_t max_bytes_;
  std::shared_mutex mutex_;
  std::unordered_map<std::int64_t, Sample> kept_;
  std::size_t bytes_ = 0;
  std::atomic<bool> full_ = false;
};

}  // namespace

std::shared_ptr<SampleCache> memory_cache(std::size_t max_bytes) {
  return std::make_shared<MemoryCache>(max_bytes);
}

}  // namespace millrace
