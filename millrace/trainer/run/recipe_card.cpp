#include "millrace/trainer/run/recipe_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "millrace/trainer/detector/detector.h"

namespace millrace {
namespace {

/// How images are prepared for detection, in the keys of [data].
Config preparation(const DataOptions& data) {
  Config table;
  const auto set = [&](const char* key, Config::Data value) {
    table.set(key, {std::move(value), {}});
  };
  set("test_short_side", data.settled_test_short_side());
  set("test_max_side", data.settled_test_max_side());
  set("resize_style", value_name(data.resize_style));
  set("reduced_decoding", data.reduced_decoding);
  set("divisor", data.divisor);
  return table;
}

/// A list of one is read as what is in it.
const Config& unwrapped(const Config& value) {
  const auto* array = std::get_if<Config::Array>(&value.data);
  return array && array->size() == 1 ? array->front() : value;
}

std::optional<double> number(const Config& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data))
    return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value.data)) return *real;
  return std::nullopt;
}

/// Whether both are among the values that decide the same.
bool both_in(const std::vector<std::string>& alike, const Config& a, const Config& b) {
  const auto has = [&](const Config& value) {
    const auto* text = std::get_if<std::string>(&value.data);
    return text && std::ranges::count(alike, *text) > 0;
  };
  return has(a) && has(b);
}

}  // namespace

ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids) {
  return {of_weights(recipe.model), preparation(recipe.data), std::move(classes),
          std::move(category_ids)};
}

std::string Contradiction::text() const {
  return fmt::format("{}: trained with {}, here {} ({})", key, was, is, origin.text());
}

std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe) {
  std::vector<Contradiction> found;
  const auto compare = [&](const WeightOption& option) {
    const auto *was = card.model.find_path(option.name), *is = recipe.model.find_path(option.name);
    if (!was || !is || same_option(*was, *is) || both_in(option.alike, *was, *is)) return;
    found.push_back(
        {"model." + option.name, value_text(*was), value_text(*is), is->origin, option.decides});
  };
  compare({"type", OfWeights::tensors, {}});
  for (const auto& option : detectors().at(recipe.model_type).weight_options()) compare(option);
  return found;
}

bool same_option(const Config& a, const Config& b) {
  const auto &left = unwrapped(a), &right = unwrapped(b);
  if (const auto x = number(left), y = number(right); x && y) return *x == *y;
  const auto *these = std::get_if<Config::Array>(&left.data),
             *those = std::get_if<Config::Array>(&right.data);
  if (these && those) return std::ranges::equal(*these, *those, same_option);
  return value_text(left) == value_text(right);
}

}  // namespace millrace
