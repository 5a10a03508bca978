// Pieces of HTML as text. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::page {

/// Text as it may stand in HTML and SVG, between tags and in quoted attributes.
std::string escaped(std::string_view text);

/// A JSON string, quotes included, as it may stand in a <script> element; what is no UTF-8 is
/// replaced.
std::string json_string(std::string_view text);

/// "data:image/jpeg;base64,..." of an image's bytes.
std::string data_uri(std::string_view bytes, std::string_view type = "image/jpeg");

/// A column of a table: numbers stand right, words left.
struct Column {
  std::string name;  // HTML
  bool words = false;
};

/// A table that scrolls sideways where its column is too narrow for it. Cells are HTML; a row may
/// have fewer cells than there are columns. The first cell of a row is its head.
std::string table(std::span<const Column> columns, std::span<const std::vector<std::string>> rows,
                  std::string_view style = "");

/// A figure in large digits over what it is. HTML.
struct Tile {
  std::string value, name;
};

/// The first one is larger.
std::string tiles(std::span<const Tile> all);

}  // namespace millrace::page
