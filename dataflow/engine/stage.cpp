#include "millrace/dataflow/engine/stage.h"

#include <cxxabi.h>

#include <string_view>

namespace millrace {

std::string readable(std::type_index type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  const std::string name = text ? text.get() : type.name();
  if (name.find("lambda") != std::string::npos) return "lambda";
  if (name.starts_with("std::__cxx11::basic_string<char")) return "string";
  if (name.find('<') != std::string::npos) return name;
  const auto colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

std::string MessageType::text() const {
  const bool vowel = std::string_view("aeiouAEIOU").find(name.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + name;
}

}  // namespace millrace
