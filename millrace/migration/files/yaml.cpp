#include "millrace/migration/files/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "millrace/base/errors.h"
#include "millrace/migration/files/python_literals.h"

namespace millrace {
namespace {

constexpr int kDeepestNode = 100;
constexpr int kMostNodes = 100000;  // aliases count as often as they are used

class Reader {
 public:
  explicit Reader(const std::string& source) : source_(source) {}

  Value read(const YAML::Node& node) {
    const Place place{source_, node.Mark().line + 1};
    if (++nodes_ > kMostNodes) fail(place, "more than 100,000 values");
    if (depth_ > kDeepestNode) fail(place, "values are nested too deeply, or in themselves");
    ++depth_;
    auto value = read_kind(node, place);
    --depth_;
    return value;
  }

 private:
  Value read_kind(const YAML::Node& node, const Place& place) {
    const auto& tag = node.Tag();
    if (tag.find("python/object/apply:eval") != std::string::npos && node.IsSequence() &&
        node.size() == 1 && node[0].IsScalar())
      return read_expression(node[0].Scalar(), place);
    if (tag.find("python/") != std::string::npos && tag.find("python/tuple") == std::string::npos)
      fail(place, fmt::format("'{}' would make an object of Python: write out the value", tag));
    if (node.IsMap()) return read_map(node, place);
    if (node.IsSequence()) {
      Value::List list;
      for (const auto& one : node) list.push_back(read(one));
      return {std::move(list), place};
    }
    if (!node.IsScalar()) return {std::monostate{}, place};
    return read_scalar(node, place);
  }

  [[noreturn]] static void fail(const Place& place, const std::string& what) {
    throw ConfigError(fmt::format("{}: {}", place.text(), what));
  }

  Value read_map(const YAML::Node& node, const Place& place) {
    Value all{Value::Dict{}, place};
    for (const auto& member : node) {
      const Place at{source_, member.first.Mark().line + 1};
      if (!member.first.IsScalar()) fail(at, "a key must be a word");
      const auto& key = member.first.Scalar();
      if (key.find('.') != std::string::npos)
        fail(at, fmt::format("the key '{}' has a dot: write its parts as nested mappings", key));
      if (all.find(key)) fail(at, fmt::format("the key '{}' comes twice", key));
      all.set(key, read(member.second));
    }
    return all;
  }

  static Value read_scalar(const YAML::Node& node, const Place& place) {
    const auto& text = node.Scalar();
    const bool is_plain = node.Tag() == "?";
    if (is_plain && (text.empty() || text == "~" || text == "null" || text == "Null"))
      return {std::monostate{}, place};
    if (is_plain)
      for (const bool value : {false, true})
        for (const auto* word : value ? kYes : kNo)  // of YAML 1.1
          if (text == word) return {value, place};
    auto literal = literal_of(text, place);
    if (!literal) return {text, place};
    literal->place = place;
    return std::move(*literal);
  }

  static constexpr const char* kYes[] = {"true", "True", "TRUE", "yes", "Yes", "on", "On"};
  static constexpr const char* kNo[] = {"false", "False", "FALSE", "no", "No", "off", "Off"};

  std::string source_;
  int nodes_ = 0, depth_ = 0;
};

}  // namespace

Value parse_yaml(const std::string& text, const std::string& source) {
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& problem) {
    throw ConfigError(fmt::format("{}: not readable as YAML: {}",
                                  Place{source, problem.mark.line + 1}.text(), problem.msg));
  }
  if (root.IsNull()) return {Value::Dict{}, {source, 1}};
  if (!root.IsMap()) throw ConfigError(fmt::format("{}:1: keys with values are needed", source));
  return Reader(source).read(root);
}

}  // namespace millrace
