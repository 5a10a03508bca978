#include "millrace/dataflow/image/buffer_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace millrace {
namespace {

// Capacities come in steps, so that batches of nearly one size share buffers.
constexpr std::size_t kStep = std::size_t{1} << 20;
constexpr std::size_t kMostIdle = 16;
constexpr std::align_val_t kAlignment{64};

BufferPool& pool_of_batches() {
  static BufferPool pool;
  return pool;
}

}  // namespace

/// The idle buffers by capacity; outlives the pool as long as a buffer is out.
struct BufferPool::Shelf {
  explicit Shelf(MemorySource from) : source(std::move(from)) {}
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;
  ~Shelf() {
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
    idle.emplace_hint(idle.lower_bound(capacity), capacity, buffer);  // last in, first out: cached
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

BufferPool::BufferPool(MemorySource source) : shelf_(std::make_shared<Shelf>(std::move(source))) {}

std::shared_ptr<std::uint8_t[]> BufferPool::acquire(std::size_t bytes) const {
  auto capacity = std::max<std::size_t>(1, (bytes + kStep - 1) / kStep) * kStep;
  auto* buffer = static_cast<std::uint8_t*>(shelf_->take(capacity));
  return {buffer, [shelf = shelf_, capacity](std::uint8_t* p) { shelf->give_back(p, capacity); }};
}

std::size_t BufferPool::bytes() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->bytes;
}

BufferPool batch_memory() { return pool_of_batches(); }
void set_batch_memory(BufferPool pool) { pool_of_batches() = std::move(pool); }

}  // namespace millrace
