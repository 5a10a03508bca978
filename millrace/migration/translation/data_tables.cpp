#include "millrace/migration/translation/data_tables.h"

#include <utility>

namespace millrace {

void put_repeat_factor(Translation& translation, const Found& threshold, const Found& from) {
  const auto origin = origin_of(from);
  Config coco(Config::Table{}, origin), repeat(Config::Table{}, origin);
  coco.set("type", {words("coco"), origin});
  repeat.set("type", {words("repeat_factor"), origin});
  repeat.set("of", {Config::Array{{words("coco"), origin}}, origin});
  repeat.set("threshold", {number(threshold.real()), origin_of(threshold)});
  translation.put("data.sources", Config::Data(Config::Array{std::move(coco), std::move(repeat)}),
                  from);
}

Config& add_stage(Config::Array& stages, const std::string& type, const Origin& origin) {
  Config table(Config::Table{}, origin);
  table.set("type", {type, origin});
  return stages.emplace_back(std::move(table));
}

void set_crop_size(Config& stage, const std::string& crop_type, std::vector<double> sides,
                   const Origin& origin) {
  if (crop_type != "absolute_range") std::swap(sides[0], sides[1]);
  Config::Array both;
  for (const double side : sides) both.push_back({number(side), origin});
  stage.set("size", {std::move(both), origin});
}

}  // namespace millrace
