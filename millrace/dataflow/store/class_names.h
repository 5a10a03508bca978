// Classes by name, numbered as they are first met.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

class ClassNames {
 public:
  std::int32_t number(std::string_view name) {
    const auto found = std::ranges::find(names_, name);
    if (found != names_.end()) return static_cast<std::int32_t>(found - names_.begin());
    names_.emplace_back(name);
    return static_cast<std::int32_t>(names_.size() - 1);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

}  // namespace millrace
