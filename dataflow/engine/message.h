// A value of any type on its way through a flow. Only the stages depend on its type.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

namespace millrace {

/// Owns one untyped value. Nothing checks the type here: `Stage` declares types, and neighbours are
/// checked when a flow is built. Move-only; values may be move-only too.
class Message {
 public:
  Message() = default;  // empty

  template <class T>
  static Message of(T value) {
    Message message;
    message.value_ = {new T(std::move(value)), [](void* p) { delete static_cast<T*>(p); }};
    return message;
  }

  explicit operator bool() const { return value_ != nullptr; }

  /// REQUIRES: holds a T.
  template <class T>
  const T& peek() const {
    return *static_cast<const T*>(value_.get());
  }

  /// Moves the value out. REQUIRES: holds a T.
  template <class T>
  T take() {
    const auto value = std::exchange(value_, nothing());
    return std::move(*static_cast<T*>(value.get()));
  }

 private:
  using Value = std::unique_ptr<void, void (*)(void*)>;
  static Value nothing() {
    return {nullptr, [](void*) {}};
  }

  Value value_ = nothing();
};

/// Returns the type's name, which is the name of its messages unless MessageName is specialised.
std::string readable(std::type_index type);
template <class T>
struct MessageName {
  static std::string get() { return readable(typeid(T)); }
};
template <class T>
struct MessageName<std::vector<T>> {
  static std::string get() { return "group of " + MessageName<T>::get() + "s"; }
};

/// The memory of a message. Specialise it for values that own memory.
template <class T>
struct MessageBytes {
  static std::size_t get(const T&) { return sizeof(T); }
};
template <class T>
struct MessageBytes<std::vector<T>> {
  static std::size_t get(const std::vector<T>& group) {
    return std::transform_reduce(group.begin(), group.end(), std::size_t{0}, std::plus<>(),
                                 MessageBytes<T>::get);
  }
};

}  // namespace millrace
