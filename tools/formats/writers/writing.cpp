#include "millrace/tools/formats/writers/writing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::formats {
namespace {

namespace fs = std::filesystem;

}  // namespace

ClassList::ClassList(std::span<const Split> splits) {
  for (const auto& split : splits) {
    std::set<std::string_view> own;
    for (const auto& category : split.data->categories) {
      const auto name = split.data->text(category.name);
      if (!own.insert(name).second)
        throw Error(
            fmt::format("{}: two categories are named '{}': rename one of them, or join them",
                        split.data->source, name));
      if (positions_.try_emplace(std::string(name), names_.size()).second)
        names_.emplace_back(name);
    }
  }
}

std::size_t ClassList::position(const coco::Dataset& data, std::int64_t category_id) const {
  const auto& category =
      data.categories[static_cast<std::size_t>(data.category_index(category_id))];
  return positions_.find(data.text(category.name))->second;
}

std::vector<NamedSplit> named_splits(std::span<const Split> splits) {
  std::vector<NamedSplit> named;
  for (const auto& split : splits) {
    auto bare = split.name;
    while (!bare.empty() && std::isdigit(static_cast<unsigned char>(bare.back())) != 0)
      bare.pop_back();
    auto name = split_name(bare);
    if (!name && splits.size() == 1) name = kWhole;
    if (!name)
      throw ConfigError(
          fmt::format("split '{}' is none of train, val and test, which this format "
                      "divides into: rename its annotation file",
                      split.name));
    for (const auto& other : named)
      if (other.name == *name)
        throw ConfigError(fmt::format("splits '{}' and '{}' are both {}: import them one by one",
                                      other.split->name, split.name, *name));
    named.push_back({*name, &split});
  }
  return named;
}

void place_file(const fs::path& from, const fs::path& to) {
  try {
    fs::create_directories(to.parent_path());
    const auto source = fs::canonical(from);  // a link to a link would break with its place
    std::error_code cannot_link;
    fs::create_hard_link(source, to, cannot_link);
    if (cannot_link) fs::copy_file(source, to);
  } catch (const fs::filesystem_error& problem) {
    throw Error(fmt::format("{} cannot be placed at {}: {}", from.string(), to.string(),
                            problem.code().message()));
  }
}

void write_new_file(const fs::path& file, std::string_view bytes) {
  std::error_code unknown;
  fs::create_directories(file.parent_path(), unknown);  // told below
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), std::ssize(bytes));
  out.close();
  if (!out) throw Error(file.string() + ": cannot be written: " + std::strerror(errno));
}

Place without_extension(const Place& place) {
  const auto stem = stem_of(place);
  const auto slash = place.rfind('/');
  return slash == Place::npos ? stem : place.substr(0, slash + 1) + stem;
}

void UniqueStems::add(const Place& image) {
  const auto [first, is_new] = seen_.try_emplace(without_extension(image), image);
  if (!is_new)
    throw Error(
        fmt::format("{} and {} would have one label file: this format tells images by their "
                    "name without extension; rename one",
                    first->second, image));
}

std::string decimal_text(double number, int decimals) {
  auto text = fmt::format("{:.{}f}", number, decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string json_quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace millrace::formats
