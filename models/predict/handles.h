// Handles that are numbers in the shape of pointers, so that a closed or made-up one is found out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace millrace {

/// What handles of one type stand for. Numbers are never given twice. Thread-safe.
template <class Handle, class T>
class Handles {
 public:
  Handle* add(std::shared_ptr<T> value) {
    const std::scoped_lock lock(mutex_);
    open_.emplace(++last_, std::move(value));
    return reinterpret_cast<Handle*>(last_);
  }

  /// nullptr if it is not open.
  std::shared_ptr<T> find(const Handle* handle) const {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == open_.end() ? nullptr : found->second;
  }

  /// Forgets a handle; what it stood for, nullptr if it was not open.
  std::shared_ptr<T> take(const Handle* handle) {
    const std::scoped_lock lock(mutex_);
    auto found = open_.extract(reinterpret_cast<std::uintptr_t>(handle));
    return found ? std::move(found.mapped()) : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<T>> open_;
  std::uintptr_t last_ = 0;
};

}  // namespace millrace
