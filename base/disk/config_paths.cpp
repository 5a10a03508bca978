#include "millrace/base/disk/config_paths.h"

#include <string>
#include <variant>

namespace millrace {

namespace fs = std::filesystem;

fs::path named_path(const Config& value) {
  const auto& by = value.origin;
  const auto folder = by.line > 0 ? fs::path(by.source).parent_path() : fs::path();
  return fs::absolute(folder / std::get<std::string>(value.data)).lexically_normal();
}

void make_path_absolute(Config& value) {
  auto* text = std::get_if<std::string>(&value.data);
  if (!text || text->empty() || text->find("://") != std::string::npos) return;
  *text = named_path(value).string();
}

}  // namespace millrace
