#include "millrace/models/predict/tensor_pool.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_set>
#include <utility>
#include <vector>

namespace millrace {
namespace {

constexpr std::size_t kLeast = std::size_t{1} << 20;  // bytes; the C library keeps smaller ones
constexpr std::size_t kAlignment = 64;

thread_local const TensorPool* active = nullptr;

/// Sizes of blocks: eight between a power of two and the next.
std::size_t rounded(std::size_t bytes) {
  const auto step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

}  // namespace

class TensorPool::State {
 public:
  /// Stands before a tensor's memory.
  struct alignas(kAlignment) Block {
    std::shared_ptr<State> state;  // while a tensor has it
    std::size_t size = 0;          // bytes of the tensor's memory

    void* memory() { return this + 1; }
    static Block* of(void* memory) { return static_cast<Block*>(memory) - 1; }
  };

  ~State() {
    for (Block* block : kept_) release(block);
  }

  /// Memory of at least `bytes`, for `give`.
  static void* take(const std::shared_ptr<State>& state, std::size_t bytes) {
    Block* block = state->take(rounded(bytes));
    block->state = state;
    return block->memory();
  }

  static void give(void* memory) {
    Block* block = Block::of(memory);
    const auto state = std::move(block->state);
    const std::scoped_lock lock(state->mutex_);
    state->in_use_ -= block->size;
    state->kept_.push_back(block);
    state->kept_bytes_ += block->size;
    state->forget();
  }

  void close() {
    const std::scoped_lock lock(mutex_);
    most_ = 0;
    forget();
  }

  std::size_t kept() {
    const std::scoped_lock lock(mutex_);
    return kept_bytes_;
  }
  std::size_t made() {
    const std::scoped_lock lock(mutex_);
    return made_;
  }

 private:
  Block* take(std::size_t size) {
    const std::scoped_lock lock(mutex_);
    auto best = kept_.end();  // the smallest that is large enough, but not half empty
    for (auto it = kept_.begin(); it != kept_.end(); ++it)
      if ((*it)->size >= size && (*it)->size <= 2 * size &&
          (best == kept_.end() || (*it)->size < (*best)->size))
        best = it;
    Block* block = nullptr;
    if (best != kept_.end()) {
      block = *best;
      kept_.erase(best);
      kept_bytes_ -= block->size;
    } else {
      void* made = std::aligned_alloc(kAlignment, sizeof(Block) + size);
      if (!made) throw std::bad_alloc();
      block = new (made) Block{nullptr, size};
      ++made_;
    }
    in_use_ += block->size;
    most_ = std::max(most_, in_use_);
    forget();
    return block;
  }

  /// Frees what was not wanted for longest, until what is kept and in use is little more than was
  /// once in use.
  void forget() {
    while (!kept_.empty() && kept_bytes_ + in_use_ > most_ + most_ / 4) {
      Block* oldest = kept_.front();
      kept_.erase(kept_.begin());
      kept_bytes_ -= oldest->size;
      release(oldest);
    }
  }

  static void release(Block* block) {
    block->~Block();
    std::free(block);
  }

  std::mutex mutex_;
  std::vector<Block*> kept_;  // in the order in which they came back
  std::size_t kept_bytes_ = 0, in_use_ = 0, most_ = 0, made_ = 0;
};

/// libtorch's allocator, but for the threads in a scope. One of a process, for its life.
class PoolAllocator : public c10::Allocator {
 public:
  static void install() {
    static std::once_flag once;
    std::call_once(once, [] {
      own_ = c10::GetCPUAllocator();
      c10::SetCPUAllocator(new PoolAllocator);
    });
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    if (!active || bytes < kLeast) return own_->allocate(bytes);
    void* memory = TensorPool::State::take(active->state_, bytes);
    const std::scoped_lock lock(mutex_);
    given_.insert(memory);
    return {memory, memory, &give_back, c10::kCPU};
  }
  /// oneDNN's memory has no other deleter, wherever it came from.
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    own_->copy_data(to, from, bytes);
  }

 private:
  static void give_back(void* memory) {
    if (take_from_given(memory))
      TensorPool::State::give(memory);
    else
      own_->raw_deleter()(memory);
  }
  static bool take_from_given(void* memory) {
    const std::scoped_lock lock(mutex_);
    return given_.erase(memory) > 0;
  }

  static inline c10::Allocator* own_ = nullptr;
  static inline std::mutex mutex_;
  static inline auto& given_ = *new std::unordered_set<void*>;  // the pools' memory that is in use
};

TensorPool::TensorPool() : state_(std::make_shared<State>()) { PoolAllocator::install(); }

TensorPool::~TensorPool() { state_->close(); }

TensorPool::Scope::Scope(const TensorPool& pool) : outer_(std::exchange(active, &pool)) {}
TensorPool::Scope::~Scope() { active = outer_; }

std::size_t TensorPool::kept() const { return state_->kept(); }
std::size_t TensorPool::blocks_made() const { return state_->made(); }

}  // namespace millrace
