#include "millrace/dataflow/image/buffer_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <opencv2/core/mat.hpp>
#include <opencv2/core/utility.hpp>
#include <utility>

namespace millrace {
namespace {

// Capacities are multiples of this, so that batches of almost the same size share buffers.
constexpr std::size_t kStep = std::size_t{1} << 20;
constexpr std::size_t kMostIdle = 16;
constexpr std::align_val_t kAlignment{64};
// Other images use the heap: it reuses smaller blocks itself, and a pool should not retain huge
// ones.
constexpr std::size_t kLeastImage = std::size_t{1} << 18, kMostImage = std::size_t{1} << 26;

BufferPool& pool_of_batches() {
  static BufferPool pool;
  return pool;
}

/// OpenCV's allocator with memory from a pool.
class PooledAllocator final : public cv::MatAllocator {
 public:
  cv::UMatData* allocate(int dims, const int* sizes, int type, void* data, std::size_t* steps,
                         cv::AccessFlag flags, cv::UMatUsageFlags usage) const override {
    std::size_t bytes = CV_ELEM_SIZE(type);
    for (int i = 0; i < dims; ++i) bytes *= static_cast<std::size_t>(sizes[i]);
    const auto* heap = cv::Mat::getStdAllocator();
    if (data || bytes < kLeastImage || bytes > kMostImage)
      return heap->allocate(dims, sizes, type, data, steps, flags, usage);

    auto buffer = std::make_unique<Buffer>(pool_.acquire(bytes));
    // OpenCV's allocator only computes the steps if memory is given.
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

/// The idle buffers by capacity; outlives the pool while a buffer is in use.
struct BufferPool::State {
  explicit State(MemorySource from) : source(std::move(from)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (const auto& [capacity, buffer] : idle) source.release(buffer);
  }

  void* take(std::size_t& capacity) {
    const std::lock_guard lock(mutex);
    const auto found = idle.lower_bound(capacity);
    if (found != idle.end() && found->first <= 2 * capacity) {
      capacity = found->first;
      return idle.extract(found).mapped();
    }
    void* buffer = source.allocate(capacity);
    bytes += capacity;
    return buffer;
  }

  void give_back(void* buffer, std::size_t capacity) {
    const std::lock_guard lock(mutex);
    idle.emplace_hint(idle.lower_bound(capacity), capacity, buffer);  // LIFO, for CPU caches
    if (idle.size() <= kMostIdle) return;
    const auto smallest = idle.begin();
    bytes -= smallest->first;
    source.release(smallest->second);
    idle.erase(smallest);
  }

  const MemorySource source;
  mutable std::mutex mutex;
  std::multimap<std::size_t, void*> idle;
  std::size_t bytes = 0;
};

BufferPool::BufferPool()
    : BufferPool({[](std::size_t bytes) { return ::operator new(bytes, kAlignment); },
                  [](void* buffer) { ::operator delete(buffer, kAlignment); }}) {}

BufferPool::BufferPool(MemorySource source) : state_(std::make_shared<State>(std::move(source))) {}

std::shared_ptr<std::uint8_t[]> BufferPool::acquire(std::size_t bytes) const {
  auto capacity = std::max<std::size_t>(1, (bytes + kStep - 1) / kStep) * kStep;
  auto* buffer = static_cast<std::uint8_t*>(state_->take(capacity));
  return {buffer, [state = state_, capacity](std::uint8_t* p) { state->give_back(p, capacity); }};
}

std::size_t BufferPool::bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

BufferPool batch_memory() { return pool_of_batches(); }
void set_batch_memory(BufferPool pool) { pool_of_batches() = std::move(pool); }

void prepare_opencv() {
  cv::setNumThreads(1);
  // Never destroyed, since images may outlive every other object.
  static auto* allocator = new PooledAllocator;
  cv::Mat::setDefaultAllocator(allocator);
}

}  // namespace millrace
