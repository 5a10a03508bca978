// What a reader does with the fields of a JSON object.
#pragma once

#include <string_view>
#include <utility>

namespace millrace::coco {

/// What to do with one field of an object.
template <typename F>
struct Field {
  std::string_view name;
  bool required;
  F read;
  bool seen = false;
};
template <typename F>
Field<F> required(std::string_view name, F read) {
  return {name, true, std::move(read)};
}
template <typename F>
Field<F> optional(std::string_view name, F read) {
  return {name, false, std::move(read)};
}

}  // namespace millrace::coco
