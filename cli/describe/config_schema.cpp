#include "millrace/cli/describe/config_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/cli/describe/config_tables.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/detection_stages.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/callback.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;
using Type = OptionHelp::Type;

constexpr std::string_view kNumber = R"(^\s*\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*)";
constexpr std::string_view kTimes = "hours?|minutes?|seconds?";

Json pattern_of(std::string_view units) { return fmt::format("{}({})\\s*$", kNumber, units); }

Json json_of(const Config& value) {
  return std::visit(
      []<class T>(const T& data) -> Json {
        if constexpr (std::is_same_v<T, Config::Table>) {
          auto table = Json::object();
          for (const auto& [key, member] : data) table[key] = json_of(member);
          return table;
        } else if constexpr (std::is_same_v<T, Config::Array>) {
          auto list = Json::array();
          for (const auto& item : data) list.push_back(json_of(item));
          return list;
        } else {
          return data;
        }
      },
      value.data);
}

/// Sets a limit of an option; limits of integers are written as integers if they are exact.
void set_limit(Json& schema, const char* keyword, double limit, bool is_integer) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (limit == Limits{}.min || limit == Limits{}.max || limit >= kAnySeed) return;
  if (is_integer && std::abs(limit) <= kExact)
    schema[keyword] = static_cast<std::int64_t>(limit);
  else
    schema[keyword] = limit;
}

Json number_schema(const Limits& limits, bool is_integer) {
  Json schema = {{"type", is_integer ? "integer" : "number"}};
  set_limit(schema, "minimum", limits.min, is_integer);
  set_limit(schema, "maximum", limits.max, is_integer);
  return schema;
}

Json text_schema(const std::vector<std::string>& choices) {
  Json schema = {{"type", "string"}};
  if (!choices.empty()) schema["enum"] = choices;
  return schema;
}

/// Returns the schema of a list of such elements; if `least` <= 1, also of one element alone.
Json list_schema(const Json& element, std::size_t least) {
  Json schema = {{"type", "array"}};
  if (least <= 1) {
    schema["type"] = Json::array({element.at("type"), "array"});
    for (const auto* keyword : {"minimum", "maximum"})  // these keywords do not apply to arrays
      if (element.contains(keyword)) schema[keyword] = element.at(keyword);
    if (element.contains("enum")) {
      schema["if"] = {{"type", "string"}};
      schema["then"] = {{"enum", element.at("enum")}};
    }
  }
  schema["items"] = element;
  if (least > 0) schema["minItems"] = least;
  return schema;
}

Json closed(Json properties) {
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json value_schema(const OptionHelp& option) {
  switch (option.type) {
    case Type::boolean:
      return {{"type", "boolean"}};
    case Type::integer:
      return number_schema(option.limits, true);
    case Type::number:
      return number_schema(option.limits, false);
    case Type::duration:
      return {{"type", "string"}, {"pattern", pattern_of(kTimes)}};
    case Type::text:
      return text_schema(option.choices);
    case Type::integers:
      return list_schema(number_schema(option.limits, true), option.limits.least);
    case Type::numbers:
      return list_schema(number_schema(option.limits, false), option.limits.least);
    case Type::texts:
      return list_schema(text_schema(option.choices), option.limits.least);
    case Type::table:
      break;
  }
  auto members = Json::object();
  for (const auto& key : option.choices) members[key] = number_schema(option.limits, false);
  return closed(std::move(members));
}

Json option_schema(const OptionHelp& option) {
  auto schema = value_schema(option);
  schema["description"] =
      option.legal.empty() ? option.doc : fmt::format("{} ({})", option.doc, option.legal);
  const auto preset = json_of(*parse_config("value = " + option.value, "default").find("value"));
  const bool is_missing =
      preset == "" || (preset.is_array() && preset.size() < option.limits.least);
  if (!is_missing) schema["default"] = preset;
  return schema;
}

/// Returns the schemas of a table's options; "rpn.nms_thresh" becomes nms_thresh of the table rpn.
Json properties_of(std::span<const OptionHelp> options) {
  auto properties = Json::object();
  for (const auto& option : options) {
    auto* at = &properties;
    std::string_view name = option.name;
    for (auto dot = name.find('.'); dot != name.npos; dot = name.find('.')) {
      auto& table = (*at)[std::string(name.substr(0, dot))];
      if (table.is_null()) table = closed(Json::object());
      at = &table.at("properties");
      name.remove_prefix(dot + 1);
    }
    (*at)[std::string(name)] = option_schema(option);
  }
  return properties;
}

Json united(const Json& a, const Json& b);

/// Returns the properties of both; a property that both have accepts the values of either.
Json united_properties(Json a, const Json& b) {
  for (const auto& [key, schema] : b.items())
    a[key] = a.contains(key) ? united(a[key], schema) : schema;
  return a;
}

Json united(const Json& a, const Json& b) {
  if (a == b) return a;
  if (a.contains("properties") && b.contains("properties"))
    return closed(united_properties(a.at("properties"), b.at("properties")));
  auto any = a.contains("anyOf")
                 ? a
                 : Json{{"description", a.value("description", "")}, {"anyOf", Json::array({a})}};
  if (std::ranges::find(any["anyOf"], b) == any["anyOf"].end()) any["anyOf"].push_back(b);
  return any;
}

struct Component {
  std::string name, doc;
  Json properties;  // without those that all components share
};

template <class Factory>
std::vector<Component> components_of(const Registry<Factory>& registry) {
  std::vector<Component> all;
  for (const auto& [name, entry] : registry.entries()) {
    auto options = entry.help();
    for (auto& option : options)
      if (!option.follows.empty()) option.doc += "; default: " + option.follows;
    all.push_back({name, entry.doc, properties_of(options)});
  }
  return all;
}

/// Returns the schema of the key `type`, which chooses a component.
Json type_schema(const std::vector<Component>& all, const std::string& doc) {
  auto names = Json::array(), docs = Json::array();
  for (const auto& [name, about, properties] : all) {
    names.push_back(name);
    docs.push_back(about);
  }
  return {{"type", "string"},
          {"enum", std::move(names)},
          {"description", doc},
          {"x-taplo", {{"docs", {{"enumValues", std::move(docs)}}}}}};
}

/// Returns a schema that depends on `type`: definitions/KIND.NAME, or `otherwise` if no component
/// has that type.
Json by_type(const std::string& kind, const std::vector<Component>& all, Json otherwise) {
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    otherwise = {
        {"if",
         {{"properties", {{"type", {{"const", one->name}}}}}, {"required", Json::array({"type"})}}},
        {"then", {{"$ref", fmt::format("#/definitions/{}.{}", kind, one->name)}}},
        {"else", std::move(otherwise)}};
  return otherwise;
}

/// Returns the schema of a table whose `type` names a component. The table also has the keys in
/// `common`, including `type`. Adds a definition for each component.
Json component_table(Json& definitions, const std::string& kind, const std::vector<Component>& all,
                     const Json& common) {
  auto properties = common;
  for (const auto& component : all) {
    definitions[kind + "." + component.name] =
        closed(united_properties(common, component.properties));
    properties = united_properties(std::move(properties), component.properties);
  }
  // Taplo completes from these properties and checks by the definitions.
  Json table = {{"type", "object"}, {"properties", properties}};
  table.update(by_type(kind, all, closed(std::move(properties))));
  return table;
}

Json list_of(Json table, const std::string& doc, const char* required) {
  table["required"] = Json::array({required});
  return {{"type", "array"}, {"description", doc}, {"items", std::move(table)}};
}

/// Returns the schema of [callbacks]. A table without `type` has its name as type.
Json callbacks_schema(Json& definitions, const Json& switches) {
  auto all = components_of(callbacks());
  for (auto& callback : all)
    if (auto every = callback.properties.find("every"); every != callback.properties.end())
      (*every)["pattern"] = pattern_of("steps?|epochs?|" + std::string(kTimes));
  auto common = switches;
  common["type"] = type_schema(all, switches.at("type").at("description").get<std::string>());
  Json any = Json::object();
  for (auto& callback : all) {
    auto own = common;
    if (!callback.properties.contains("every"))  // these keys need `every`
      for (const auto* key : {"only_if", "at_start"}) own.erase(key);
    callback.properties = united_properties(std::move(own), callback.properties);
    definitions["callback." + callback.name] = closed(callback.properties);
    any = united_properties(std::move(any), callback.properties);
  }
  definitions["callback"] = by_type("callback", all, true);  // `type` itself rejects unknown types
  const auto table = [](const std::string& doc, Json properties, Json otherwise) -> Json {
    return {{"type", "object"},
            {"description", doc},
            {"properties", std::move(properties)},
            {"if", {{"required", Json::array({"type"})}}},
            {"then", {{"$ref", "#/definitions/callback"}}},
            {"else", std::move(otherwise)}};
  };
  auto tables = Json::object();
  for (const auto& callback : all) {
    auto properties = Json::object();
    for (const auto& [key, schema] : callback.properties.items()) properties[key] = any.at(key);
    tables[callback.name] = table(callback.doc, std::move(properties),
                                  {{"$ref", "#/definitions/callback." + callback.name}});
  }
  return {{"type", "object"},
          {"description", "callbacks, each a table: [callbacks.NAME]"},
          {"propertyNames", {{"pattern", "^[A-Za-z0-9_-]+$"}}},
          {"properties", std::move(tables)},
          {"additionalProperties", table("a callback with a custom name", any, closed(any))}};
}

/// Returns what a file without a `base` must satisfy. Such a file may itself be a base, so it may
/// lack a detector.
Json file_without_base(const std::vector<std::string>& callback_names) {
  auto named = Json::object();
  for (const auto& name : callback_names) named[name] = true;
  return {{"properties",
           {{"unset", false},
            {"callbacks",
             {{"properties", std::move(named)},
              {"additionalProperties", {{"required", Json::array({"type"})}}}}}}}};
}

}  // namespace

Json config_schema() {
  auto definitions = Json::object();
  auto properties = Json::object();
  properties["base"] = {{"type", "string"},
                        {"description",
                         "file to inherit, relative to this one: tables are merged, stages with "
                         "`after` or `before` are added, other values replace inherited ones"}};
  properties["unset"] = {
      {"type", "array"},
      {"items", {{"type", "string"}}},
      {"description", "keys of the base to reset to their defaults, such as \"schedule.warmup\""}};
  for (const auto& table : config_tables()) {
    auto own = properties_of(table.options);
    const auto choose_by = [&](const std::vector<Component>& all) {
      own["type"] = type_schema(all, own.at("type").at("description").get<std::string>());
    };
    if (table.name.empty()) {
      properties.update(own);
    } else if (table.name == "[data.sources]") {
      const auto all = components_of(detection_sources());
      choose_by(all);
      own.erase("of");  // only for sources that combine other sources
      properties["data"]["properties"]["sources"] =
          list_of(component_table(definitions, "source", all, own), table.doc, "type");
    } else if (table.name == "[data.stages]") {
      const auto all = components_of(detection_stages());
      choose_by(all);
      properties["data"]["properties"]["stages"] =
          list_of(component_table(definitions, "stage", all, own), table.doc, "type");
    } else if (table.name == "model") {
      const auto all = components_of(detectors());
      choose_by(all);
      properties["model"] = component_table(definitions, "detector", all, own);
      properties["model"]["description"] = table.doc;
    } else if (table.name == "callbacks.NAME") {
      properties["callbacks"] = callbacks_schema(definitions, own);
    } else if (table.name == "[optimizer.groups]") {
      properties["optimizer"]["properties"]["groups"] =
          list_of(closed(std::move(own)), table.doc, "match");
    } else {
      auto place = "/" + table.name;
      for (auto dot = place.find('.'); dot != place.npos; dot = place.find('.'))
        place.replace(dot, 1, "/properties/");
      auto& schema = properties[Json::json_pointer(place)];
      schema = closed(std::move(own));
      schema["description"] = table.doc;
    }
  }
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Millrace configuration"}};
  schema.update(closed(std::move(properties)));
  schema["if"] = {{"required", Json::array({"base"})}};
  schema["then"] = true;
  schema["else"] = file_without_base(callbacks().names());
  schema["definitions"] = std::move(definitions);
  return schema;
}

}  // namespace millrace::cli
