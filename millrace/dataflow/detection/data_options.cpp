#include "millrace/dataflow/detection/data_options.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

#include "millrace/base/require.h"
#include "millrace/dataflow/detection/batch_padding.h"

namespace millrace {
namespace {

/// tcp://HOST:PORT or ipc://FILE, as a consumer connects to it.
bool is_address(std::string_view text) {
  if (text.starts_with("ipc://")) return text.size() > 6;
  if (!text.starts_with("tcp://")) return false;
  const auto colon = text.rfind(':');
  const auto host = text.substr(6, colon - std::min<std::size_t>(colon, 6));
  const auto digits = text.substr(colon + 1);
  int port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return colon > 6 && !host.empty() && host != "*" && problem == std::errc() &&
         end == digits.data() + digits.size() && port >= 1 && port <= 65535;
}

/// Throws ConfigError for what is no shape, and where images of the default pipeline fit into none.
void check_pad_shapes(const DataOptions& data, const Config& table) {
  bool fits = data.pad_shapes.empty() || table.find("stages");
  const auto side = std::min(*std::ranges::max_element(data.short_side), data.max_side);
  for (const auto& text : data.pad_shapes) try {
      const auto shape = parse_shape(text);
      fits = fits || std::min(shape.width, shape.height) >= side;
    } catch (const std::invalid_argument& problem) {
      require(table, "pad_shapes", false, problem.what());
    }
  require(table, "pad_shapes", fits,
          fmt::format("has no shape with both sides of {} pixels or more, which images of that "
                      "short_side have",
                      side));
}

}  // namespace

void DataOptions::check(const Config& table) const {
  for (const auto& name : classes)
    require(table, "classes", std::ranges::count(classes, name) == 1,
            fmt::format("has '{}' twice", name));
  if (short_side_range)
    require(table, "short_side", short_side.size() == 2 && short_side[0] <= short_side[1],
            "is [lowest, highest] with short_side_range = true");
  check_pad_shapes(*this, table);
  for (const auto& address : source)
    require(
        table, "source", is_address(address),
        fmt::format("has '{}', which is no address: write tcp://HOST:PORT or ipc://FILE", address));
  const bool has_one = source_key.empty() != source_server_key.empty();
  require(table, source_key.empty() ? "source_server_key" : "source_key", !has_one,
          fmt::format("and data.{} go together: our secret key, and the servers' public key",
                      source_key.empty() ? "source_key" : "source_server_key"));
  if (on_error == "fail")
    refuse_unused<DataOptions>(table, {"max_skipped"}, "with on_error = \"fail\"");
  if (shape_buckets > 0)
    refuse_unused<DataOptions>(table, {"aspect_grouping"}, "with shape_buckets > 0");
}

}  // namespace millrace
