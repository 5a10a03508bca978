// What [data] gives the tables of [[data.stages]] and [[data.sources]].
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "millrace/dataflow/detection/data_options.h"

namespace millrace {

/// An option of the component `type` that follows a key of [data] where its table leaves it out.
struct DataDefault {
  std::string_view type, option, key;
};
std::span<const DataDefault> stage_defaults();
std::span<const DataDefault> source_defaults();

/// The key that an option follows, "data.flip"; empty: none.
std::string followed_key(std::span<const DataDefault> defaults, std::string_view type,
                         std::string_view option);

/// Writes the option into the table, as one that follows `key` ("data.flip"), unless the table has
/// a value of its own.
void follow(Config& table, std::string_view option, Config value, std::string key);
/// The same for all options of the component `type` in `defaults`, by the values of `data`.
void follow_data(Config& table, std::string_view type, std::span<const DataDefault> defaults,
                 const DataOptions& data);

}  // namespace millrace
