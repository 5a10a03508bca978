// A value of any type on its way through a flow. Only the stages know which type it is.
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

/// Owns one value whose type is forgotten; `Stage` remembers it and checks neighbours when a flow
/// is built, so that nothing has to be checked here. Move-only, and so are the values that it may
/// hold.
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

  /// Moves the value out and leaves the message empty. REQUIRES: holds a T.
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

/// What people call messages of type `T`: the type's name, unless a specialisation says better.
std::string readable(std::type_index type);
template <class T>
struct MessageName {
  static std::string get() { return readable(typeid(T)); }
};
template <class T>
struct MessageName<std::vector<T>> {
  static std::string get() { return "group of " + MessageName<T>::get() + "s"; }
};

/// The memory that a message holds: of values that own much, a specialisation says how much.
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
