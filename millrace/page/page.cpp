#include "millrace/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "millrace/page/chart_script.h"
#include "millrace/page/gallery_script.h"
#include "millrace/page/html.h"
#include "millrace/page/style.h"

namespace millrace::page {
namespace {

constexpr std::size_t kListed = 3;  // sections: fewer need no list

/// What a page may load: what is in it. A name that escapes its quotes could load nothing either.
constexpr std::string_view kPolicy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

bool has(const Page& page, std::string_view mark) {
  return page.top.find(mark) != std::string::npos ||
         std::ranges::any_of(page.sections, [&](const Section& section) {
           return section.body.find(mark) != std::string::npos;
         });
}

std::string script(std::string_view text) { return fmt::format("<script>{}</script>\n", text); }

}  // namespace

std::string Page::html() const {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
      kPolicy, escaped(title), kPageStyle, escaped(title));
  if (!subtitle.empty()) out += fmt::format("<p class=\"soft\">{}</p>\n", subtitle);
  if (sections.size() >= kListed) {
    out += "<nav aria-label=\"Sections\">";
    for (const Section& one : sections)
      out += fmt::format("<a href=\"#{}\">{}</a> ", one.id, escaped(one.title));
    out += "</nav>\n";
  }
  out += top;
  for (const Section& one : sections)
    out += fmt::format(
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">"
        "{1}</h2>\n{2}</section>\n",
        one.id, escaped(one.title), one.body);
  if (!footer.empty()) out += fmt::format("<footer>{}</footer>\n", footer);
  out += "</main>\n";
  if (has(*this, "<figure class=\"lines\"")) out += script(kChartScript);
  if (has(*this, "<div class=\"gallery\"")) out += script(kGalleryScript);
  return out + "</body>\n</html>\n";
}

}  // namespace millrace::page
