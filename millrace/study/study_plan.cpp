#include "millrace/study/study_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"

namespace millrace::study {
namespace {

/// The parts between commas that no bracket or quote encloses.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == ',' && depth == 0 && !quote)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

}  // namespace

Varied read_varied(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(fmt::format("--vary {}: {}", text, why));
  };
  const auto sign = text.find('=');
  Varied varied{trimmed(text.substr(0, sign)), {}};
  if (sign == std::string_view::npos || varied.key.empty())
    refuse("takes a key and its values, such as optimizer.lr=0.01,0.02");
  for (const auto& part : parts_of(text.substr(sign + 1))) {
    varied.values.push_back(trimmed(part));
    if (varied.values.back().empty()) refuse("has an empty value; write '' for an empty string");
    if (std::ranges::count(varied.values, varied.values.back()) > 1)
      refuse(fmt::format("has {} twice", varied.values.back()));
  }
  if (varied.values.size() < 2)
    refuse("needs two values or more; --set sets a key to the same value in all runs");
  return varied;
}

std::vector<Variant> variants_of(const StudyPlan& plan) {
  std::vector<Variant> all(1);
  for (const auto& [key, values] : plan.varied) {
    std::vector<Variant> longer;
    for (const auto& variant : all)
      for (const auto& value : values) {
        longer.push_back(variant);
        longer.back().settings.push_back(key + "=" + value);
      }
    all = std::move(longer);
  }
  for (auto& variant : all)
    variant.name = variant.settings.empty() ? plan.name() : joined(variant.settings);
  return all;
}

std::vector<std::string> differences(const StudyPlan& was, const StudyPlan& now) {
  std::vector<std::string> all;
  const auto compare = [&](const std::string& what, const std::string& there,
                           const std::string& here) {
    if (there != here) all.push_back(fmt::format("{} is {} there and {} here", what, there, here));
  };
  compare("the configuration's name", was.name(), now.name());
  const auto values_of = [](const StudyPlan& plan, const std::string& key) {
    const auto at = std::ranges::find(plan.varied, key, &Varied::key);
    return at == plan.varied.end() ? std::string("not varied") : joined(at->values, ",");
  };
  std::vector<std::string> keys;
  for (const auto* plan : {&was, &now})
    for (const auto& varied : plan->varied)
      if (std::ranges::count(keys, varied.key) == 0) keys.push_back(varied.key);
  for (const auto& key : keys) compare("--vary " + key, values_of(was, key), values_of(now, key));
  if (all.empty() && !std::ranges::equal(was.varied, now.varied, {}, &Varied::key, &Varied::key))
    all.emplace_back("the keys of --vary come in another order");
  if (now.seeds < was.seeds)
    compare("--seeds", std::to_string(was.seeds), std::to_string(now.seeds));
  const auto value_of = [](const StudyPlan& plan, const std::string& key) {
    const auto at = plan.configuration.find(key);
    return at == plan.configuration.end() ? std::string("not set") : at->second;
  };
  std::map<std::string, std::string> both = was.configuration;
  both.insert(now.configuration.begin(), now.configuration.end());
  for (const auto& [key, value] : both)
    if (std::ranges::count(keys, key) == 0) compare(key, value_of(was, key), value_of(now, key));
  return all;
}

nlohmann::ordered_json to_json(const StudyPlan& plan) {
  auto varied = nlohmann::ordered_json::array();
  for (const auto& [key, values] : plan.varied)
    varied.push_back({{"key", key}, {"values", values}});
  return {{"config_file", plan.config_file.string()},
          {"settings", plan.settings},
          {"vary", varied},
          {"seeds", plan.seeds},
          {"maths_threads", plan.maths_threads},
          {"configuration", plan.configuration}};
}

StudyPlan plan_from(const nlohmann::ordered_json& json) {
  StudyPlan plan;
  plan.config_file = json.at("config_file").get<std::string>();
  json.at("settings").get_to(plan.settings);
  for (const auto& one : json.at("vary"))
    plan.varied.push_back(
        {one.at("key").get<std::string>(), one.at("values").get<std::vector<std::string>>()});
  json.at("seeds").get_to(plan.seeds);
  json.at("maths_threads").get_to(plan.maths_threads);
  json.at("configuration").get_to(plan.configuration);
  return plan;
}

}  // namespace millrace::study
