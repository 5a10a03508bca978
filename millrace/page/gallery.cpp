#include "millrace/page/gallery.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "millrace/page/html.h"

namespace millrace::page {
namespace {

/// The position of a name in a list, to which it is added if missing.
std::size_t position(std::vector<std::string>& names, const std::string& name) {
  const auto at = std::ranges::find(names, name);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

/// Hues that differ from class to class; the script has the same.
std::string colour(int category) {
  return fmt::format("hsl({:.0f} 90% 62%)", std::fmod(35 + 137.508 * category, 360));
}

std::string path(const Shape& shape) {
  if (!shape.outline.empty()) return shape.outline;
  const auto& [x, y, w, h] = shape.box;
  return fmt::format("M{0:.1f} {1:.1f}h{2:.1f}v{3:.1f}h-{2:.1f}z", x, y, std::max(0.F, w),
                     std::max(0.F, h));
}

/// A number as JSON has it.
std::string number(double value, std::string_view format_of_others = "null") {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : std::string(format_of_others);
}

/// A path is an attribute and a string of JSON: what is none could be anything.
bool is_path(std::string_view outline) {
  return outline.find_first_not_of("MmLlHhVvCcQqZz0123456789.,-+ e") == std::string_view::npos;
}

class Writer {
 public:
  explicit Writer(const Gallery& all) : all_(all) {
    for (const Picture& picture : all.pictures) {
      for (const auto& [name, value] : picture.figures) position(figures_, name);
      for (const std::string& tag : picture.tags) position(tags_, tag);
    }
  }

  std::string write() && {
    put("<div class=\"gallery\" id=\"{}\">\n<form class=\"tools\" hidden></form>\n"
        "<p class=\"soft count\" role=\"status\">{}</p>\n<ul class=\"cards\">\n",
        all_.id, all_.pictures.empty() ? "No pictures." : "");
    for (const Picture& picture : all_.pictures) card(picture);
    out_ += "</ul>\n<script type=\"application/json\">";
    data();
    out_ += "</script>\n</div>\n";
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  void put(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  void card(const Picture& picture) {
    put("<li><button type=\"button\" class=\"card\"><span class=\"panes\"><span class=\"pane\">");
    if (picture.jpeg.empty())
      put("<span class=\"lost\" style=\"aspect-ratio: {} / {}\"></span>", picture.width,
          picture.height);
    else
      put("<img alt=\"{}\" width=\"{}\" height=\"{}\" src=\"{}\">", escaped(picture.title),
          picture.width, picture.height, data_uri(picture.jpeg));
    put("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
        picture.width, picture.height);
    for (const Shape& shape : picture.shapes) {
      if (shape.kind == Shape::found && shape.score < all_.score) continue;
      put("<path class=\"{}{}\" stroke=\"{}\" d=\"{}\"/>",
          shape.kind == Shape::found ? "found" : "annotated", shape.outline.empty() ? " box" : "",
          colour(shape.category), is_path(shape.outline) ? path(shape) : "");
    }
    put("</svg></span></span><b>{}</b><small>{}</small></button></li>\n", escaped(picture.title),
        escaped(caption(picture)));
  }

  /// The figures, then the caption.
  static std::string caption(const Picture& picture) {
    std::string text;
    for (const auto& [name, value] : picture.figures)
      text += fmt::format("{}{} {:.3g}", text.empty() ? "" : ", ", name, value);
    if (!picture.caption.empty()) text += (text.empty() ? "" : " · ") + picture.caption;
    return text;
  }

  void names(std::string_view key, const std::vector<std::string>& list) {
    put("\"{}\":[", key);
    for (std::size_t i = 0; i < list.size(); ++i)
      put("{}{}", i == 0 ? "" : ",", json_string(list[i]));
    out_ += "],\n";
  }

  void data() {
    put("{{\"score\":{},\n", number(all_.score, "0"));
    names("categories", all_.categories);
    names("figures", figures_);
    names("tags", tags_);
    out_ += "\"pictures\":[";
    for (const Picture& picture : all_.pictures) {
      put("{}\n{{\"w\":{},\"h\":{},\"title\":{},\"caption\":{},\"figures\":[",
          &picture == all_.pictures.data() ? "" : ",", picture.width, picture.height,
          json_string(picture.title), json_string(picture.caption));
      for (std::size_t i = 0; i < figures_.size(); ++i) {
        const auto at = std::ranges::find(
            picture.figures, figures_[i], [](const auto& one) -> const auto& { return one.first; });
        put("{}{}", i == 0 ? "" : ",",
            at == picture.figures.end() ? std::string("null") : number(at->second));
      }
      out_ += "],\"tags\":[";
      for (const std::string& tag : picture.tags)
        put("{}{}", &tag == picture.tags.data() ? "" : ",", position(tags_, tag));
      out_ += "],\"shapes\":[";
      for (const Shape& shape : picture.shapes) this->shape(shape, &shape == picture.shapes.data());
      out_ += "]}";
    }
    out_ += "]}";
  }

  /// [kind, category, score, x, y, w, h, note, outline, found_at]
  void shape(const Shape& one, bool is_first) {
    put("{}[{},{},{},", is_first ? "" : ",", static_cast<int>(one.kind), one.category,
        number(std::round(one.score * 1e4) / 1e4, "0"));
    for (const float value : one.box) put("{},", number(std::round(value * 10) / 10, "0"));
    put("{},{},{}]", json_string(one.note), json_string(is_path(one.outline) ? one.outline : ""),
        number(std::round(one.found_at * 1e4) / 1e4, "-1"));
  }

  const Gallery& all_;
  std::vector<std::string> figures_, tags_;
  std::string out_;
};

}  // namespace

std::string gallery(const Gallery& all) { return Writer(all).write(); }

}  // namespace millrace::page
