#include "millrace/dataflow/image/image_memory.h"

#include <cstdint>
#include <memory>
#include <opencv2/core/mat.hpp>

#include "millrace/dataflow/image/buffer_pool.h"

namespace millrace {
namespace {

// The heap uses smaller blocks again by itself; and no pool should keep what one giant among the
// images took.
constexpr std::size_t kLeast = std::size_t{1} << 18, kMost = std::size_t{1} << 26;

/// OpenCV's own allocator, but for the memory.
class PooledAllocator final : public cv::MatAllocator {
 public:
  cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, std::size_t* steps,
                         cv::AccessFlag flags, cv::UMatUsageFlags usage) const override {
    std::size_t bytes = CV_ELEM_SIZE(type);
    for (int i = 0; i < dims; ++i) bytes *= static_cast<std::size_t>(sizes[i]);
    const auto* heap = cv::Mat::getStdAllocator();
    if (data || bytes < kLeast || bytes > kMost)
      return heap->allocate(dims, sizes, type, data, steps, flags, usage);

    auto buffer = std::make_unique<Buffer>(pool_.acquire(bytes));
    // With memory given, OpenCV's allocator only fills in the steps.
    auto* result = heap->allocate(dims, sizes, type, buffer->get(), steps, flags, usage);
    result->currAllocator = result->prevAllocator = this;
    result->userdata = buffer.release();
    return result;
  }

  bool allocate(cv::UMatData* data, cv::AccessFlag, cv::UMatUsageFlags) const override {
    return data != nullptr;
  }

  void deallocate(cv::UMatData* data) const override {
    if (!data) return;
    delete static_cast<Buffer*>(data->userdata);
    delete data;
  }

 private:
  using Buffer = std::shared_ptr<std::uint8_t[]>;
  BufferPool pool_;
};

}  // namespace

void pool_images() {
  // Never destroyed: images may outlive everything else.
  static auto* allocator = new PooledAllocator;
  cv::Mat::setDefaultAllocator(allocator);
}

}  // namespace millrace
