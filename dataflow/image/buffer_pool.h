// Memory for pixels that is reused, so that a long run faults its pages in only once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace millrace {

/// The memory of a pool, such as page-locked memory for copies to a GPU.
struct MemorySource {
  std::function<void*(std::size_t bytes)> allocate;  // throws if there is none
  std::function<void(void*)> release;
};

/// Hands out buffers and takes them back when released, even after its end. Thread-safe.
class BufferPool {
 public:
  /// From the heap, in lines of 64 bytes.
  BufferPool();
  explicit BufferPool(MemorySource source);

  /// At least `bytes` bytes of any content, aligned to 64.
  std::shared_ptr<std::uint8_t[]> acquire(std::size_t bytes) const;

  /// What the pool has allocated, in use or not.
  std::size_t bytes() const;

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

/// The pool for the pixels of this process's batches.
BufferPool batch_memory();
/// Another pool for them, set before the flows that are to use it are made.
void set_batch_memory(BufferPool pool);

/// Changes OpenCV for the whole process: images take their pixels from one BufferPool, since fresh
/// pages cost a quarter of resizing an image, and functions run on the calling thread alone, since
/// a flow keeps each core busy. For the start of a program that runs flows. Idempotent.
void prepare_opencv();

}  // namespace millrace
