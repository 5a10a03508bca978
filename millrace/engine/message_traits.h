// What a type of messages is called and how much memory one holds: specialised beside the type.
#pragma once

#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <typeindex>
#include <vector>

namespace millrace {

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
