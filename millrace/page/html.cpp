#include "millrace/page/html.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace millrace::page {

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else
      result += c;
  }
  return result;
}

std::string json_string(std::string_view text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string result;  // no "</script>" and no "<!--" ends or hides the script
  for (const char c : quoted) result += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return result;
}

std::string data_uri(std::string_view bytes, std::string_view type) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result = fmt::format("data:{};base64,", type);
  result.reserve(result.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      result += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return result;
}

std::string table(std::span<const Column> columns, std::span<const std::vector<std::string>> rows,
                  std::string_view style) {
  std::string out =
      fmt::format("<div class=\"scroll\" tabindex=\"0\"><table{}>\n<thead><tr>",
                  style.empty() ? std::string() : fmt::format(" class=\"{}\"", style));
  const auto side = [&](std::size_t i) {
    return i > 0 && i < columns.size() && columns[i].words ? " class=\"left\"" : "";
  };
  for (std::size_t i = 0; i < columns.size(); ++i)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", side(i), columns[i].name);
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      out += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", row[i])
                    : fmt::format("<td{}>{}</td>", side(i), row[i]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string tiles(std::span<const Tile> all) {
  std::string out = "<div class=\"tiles\">\n";
  for (const Tile& tile : all)
    out += fmt::format("<div class=\"tile{}\"><b>{}</b><span>{}</span></div>\n",
                       &tile == all.data() ? " first" : "", tile.value, tile.name);
  return out + "</div>\n";
}

}  // namespace millrace::page
