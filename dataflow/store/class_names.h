// Classes by name, numbered as they are first met.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace {

class ClassNames {
 public:
  std::int32_t number(std::string_view name) {
    const auto next = static_cast<std::int32_t>(names_.size());
    const auto [found, is_new] = numbers_.try_emplace(std::string(name), next);
    if (is_new) names_.emplace_back(name);
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::int32_t> numbers_;  // by name
};

}  // namespace millrace
