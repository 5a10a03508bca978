// Memory for pixels that is reused, so that its pages are faulted in only once in a long run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace millrace {

/// The source of a pool's memory, such as page-locked memory for copies to a GPU.
struct MemorySource {
  std::function<void*(std::size_t bytes)> allocate;  // throws if memory is exhausted
  std::function<void(void*)> release;
};

/// Lends buffers, which return when released, even after the pool is destroyed. Thread-safe.
class BufferPool {
 public:
  /// Allocates from the heap, in lines of 64 bytes.
  BufferPool();
  explicit BufferPool(MemorySource source);

  /// Returns a buffer of at least `bytes` bytes, uninitialised, aligned to 64.
  std::shared_ptr<std::uint8_t[]> acquire(std::size_t bytes) const;

  /// Returns the bytes that the pool has allocated, in use or not.
  std::size_t bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Returns the pool for the pixels of this process's batches.
BufferPool batch_memory();
/// Replaces that pool; must be called before the flows that use it are made.
void set_batch_memory(BufferPool pool);

/// Changes OpenCV for the whole process: images take their pixels from one BufferPool, since fresh
/// pages cost a quarter of resizing an image, and functions run on the calling thread only, since a
/// flow keeps each core busy. Called at the start of a program that runs flows. Idempotent.
void prepare_opencv();

}  // namespace millrace
