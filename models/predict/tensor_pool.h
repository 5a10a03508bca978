// Memory of large tensors that is kept from one image to the next.
#pragma once

#include <cstddef>
#include <memory>

namespace millrace {

/// The C library maps memory for each large tensor and gives it back at once, so that every image
/// pays for its pages anew: an eighth of the time that it takes. A pool keeps what was freed for
/// the tensors that follow, and never holds much more than was once in use at one time. Threads may
/// share it; tensors may outlive it.
class TensorPool {
 public:
  TensorPool();
  ~TensorPool();
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  /// While it lives, large tensors that this thread makes on the CPU take their memory from the
  /// pool. Other threads and other pools are left alone.
  class Scope {
   public:
    explicit Scope(const TensorPool& pool);
    Scope(const Scope&) = delete;
    ~Scope();

   private:
    const TensorPool* outer_;
  };

  /// Bytes that are kept for tensors to come.
  std::size_t kept() const;
  /// Blocks that were asked of the C library so far.
  std::size_t blocks_made() const;

 private:
  friend class PoolAllocator;
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace millrace
