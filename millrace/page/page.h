// One HTML page in one file: it opens from a disk, loads nothing, and is read in light and dark, on
// paper, on a phone and without a mouse. Pure; any thread.
#pragma once

#include <string>
#include <vector>

namespace millrace::page {

/// A part of a page under a heading.
struct Section {
  std::string id;     // its anchor: letters, digits and dashes, once in a page
  std::string title;  // text
  std::string body;   // HTML
};

struct Page {
  std::string title;     // text
  std::string subtitle;  // HTML of a line below the title; empty: none
  std::string top;       // HTML above the first section
  std::vector<Section> sections;
  std::string footer;  // HTML; empty: none

  /// The whole page. The scripts of line charts and galleries are in it if it has any. From three
  /// sections on it begins with a list of them. Equal input gives equal bytes.
  std::string html() const;
};

}  // namespace millrace::page
