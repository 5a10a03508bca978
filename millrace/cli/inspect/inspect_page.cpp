#include "millrace/cli/inspect/inspect_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/text.h"
#include "millrace/cli/inspect/figure_text.h"
#include "millrace/cli/inspect/histogram_pictures.h"
#include "millrace/page/charts.h"
#include "millrace/page/html.h"
#include "millrace/page/page.h"

namespace millrace::cli {
namespace {

using page::escaped;

constexpr std::size_t kMostClasses = 200;  // rows of the table

std::string paragraph(const std::string& text) { return fmt::format("<p>{}</p>\n", escaped(text)); }

std::string remarks_html(const std::vector<Remark>& remarks) {
  std::string html;
  for (const bool warnings : {true, false})
    for (const auto& one : remarks)
      if (one.is_warning == warnings)
        html += fmt::format("<p class=\"verdict{}\" id=\"{}\">{}</p>\n",
                            one.is_warning ? " warning" : "", one.name, escaped(one.text));
  return html;
}

std::string tiles_of(const Inspection& found) {
  const auto& data = found.train ? found.train->view.data : found.batches.seen;
  const auto objects = data.objects.size() - crowd_count(data);
  std::vector<page::Tile> all = {
      {std::to_string(data.images.size()), found.train ? "images" : "images drawn"},
      {std::to_string(objects), "objects"},
      {std::to_string(data.classes.size()), data.classes.size() == 1 ? "class" : "classes"}};
  if (!data.images.empty())
    all.push_back({fmt::format("{:.1f}", static_cast<double>(objects) /
                                             static_cast<double>(data.images.size())),
                   "objects an image"});
  all.push_back({fmt::format("{:.0f} %", 100 * found.batches.padding_share()),
                 "of the batches' pixels are padding"});
  const auto& learned = found.learned();
  if (!learned.coverage.empty()) {
    const auto sums = summary(learned.data, learned.coverage);
    all.push_back({fmt::format("{:.1f} %", 100 * sums.all.share(Reach::nothing)),
                   "of the objects: no anchor"});
  }
  return page::tiles(all);
}

std::string batches_html(const Inspection& found) {
  const auto& batches = found.batches;
  auto text = fmt::format(
      "The first batches of the training, as the detector gets them: after all stages, with the "
      "boxes and masks that it learns. Stripes are padding, which no image fills. {} of {} drawn "
      "here; ",
      counted(std::ssize(batches.pictures), "image"),
      batches.files.size() == 1 ? "1 batch" : fmt::format("{} batches", batches.files.size()));
  std::vector<std::string> names;
  for (const auto& file : batches.files) names.push_back(file.filename().string());
  text += joined(names) + " beside this page " + (names.size() == 1 ? "has it" : "have them") +
          " with masks and names.";
  auto html = paragraph(text);
  if (batches.skipped > 0)
    html += paragraph(fmt::format("{} left out: {}", counted(batches.skipped, "sample"),
                                  joined(batches.skipped_reasons, "; ")));
  page::Gallery gallery{
      .id = "batches-gallery", .categories = batches.seen.classes, .pictures = batches.pictures};
  return html + page::gallery(gallery);
}

std::string photos_html(const SplitChapter& split) {
  const auto& data = split.view.data;
  if (split.gallery.pictures.empty())
    return paragraph("Nothing is shown: what the images are is known only once they are decoded.");
  return paragraph(fmt::format(
             "{} of {}: at the ends of what there is (tags say which), one of each of the rarest "
             "classes, and some at equal distances. Sizes of objects: {}.",
             split.gallery.pictures.size(), counted(std::ssize(data.images), "image"),
             split.view.seen)) +
         page::gallery(split.gallery);
}

std::string histograms_html(const std::vector<Distribution>& all) {
  std::string html = "<div class=\"pair\">\n";
  for (const auto& one : all) {
    const auto bins = closed_bins(one);
    html += fmt::format(
        "<figure><figcaption class=\"title\">{}</figcaption>\n{}<figcaption>{}</figcaption>"
        "</figure>\n",
        escaped(one.title),
        page::histogram(bins.edges, bins.counts, one.unit,
                        fmt::format("{}: {}", one.title, one.meaning)),
        escaped(one.meaning));
  }
  return html + "</div>\n";
}

std::string anchors_html(const SplitView& split) {
  const auto sums = summary(split.data, split.coverage);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, const CoverageCounts& counts) {
    const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
    if (counts.objects == 0) return rows.push_back({escaped(name), "0"});
    rows.push_back(
        {escaped(name), std::to_string(counts.objects), percent(counts.share(Reach::foreground)),
         percent(counts.share(Reach::low_quality)), percent(counts.share(Reach::nothing)),
         percent(counts.recall(0)), percent(counts.recall(1))});
  };
  const auto names = size_names();
  for (std::size_t k = 0; k < names.size(); ++k) add(names[k], sums.by_size[k]);
  add("all", sums.all);
  const std::vector<page::Column> columns = {{"pixels seen", true}, {"objects"},
                                             {"learned, %"},        {"by best anchors alone, %"},
                                             {"by no anchor, %"},   {"recall at 0.5, %"},
                                             {"recall at 0.7, %"}};
  return page::table(columns, rows, "narrow") +
         paragraph(
             "Learned: an anchor overlaps the object by the foreground threshold or more. By best "
             "anchors alone: none does, and the anchors that overlap it most learn it all the "
             "same. By no anchor: those overlap another object more. Recall: the share of the "
             "objects that the anchors themselves would find as proposals, which regression then "
             "improves.");
}

std::string classes_html(const Inspection& found) {
  const auto& data = found.train ? found.train->view.data : found.batches.seen;
  const auto& classes = data.classes;
  const auto train = class_counts(data);
  const auto val = found.val ? class_counts(found.val->view.data) : std::vector<ClassCount>();
  std::vector<std::size_t> order(classes.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t k) { return train[k].objects; });
  std::vector<page::Column> columns = {{"class", true}, {"objects"}, {"images"}};
  if (found.val) {
    columns.push_back({"objects, " + escaped(found.val->view.name)});
    columns.push_back({"images, " + escaped(found.val->view.name)});
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const auto k = order[place];
    const bool is_end = place < kMostClasses / 2 || place + kMostClasses / 2 >= order.size();
    if (order.size() > kMostClasses && !is_end) continue;
    auto& row = rows.emplace_back();
    row = {escaped(classes[k]), std::to_string(train[k].objects), std::to_string(train[k].images)};
    if (!found.val) continue;
    row.push_back(std::to_string(val[k].objects));
    row.push_back(std::to_string(val[k].images));
  }
  std::string html;
  if (order.size() > kMostClasses)
    html = paragraph(fmt::format("The {0} most frequent and the {0} rarest of {1} classes.",
                                 kMostClasses / 2, order.size()));
  return html + page::table(columns, rows, "narrow");
}

}  // namespace

std::string inspect_page(const Inspection& found) {
  page::Page page{.title = "What training sees",
                  .subtitle = fmt::format("<code>{}</code>", escaped(found.config))};
  page.top = tiles_of(found) + remarks_html(found.remarks);
  for (const auto& note : found.notes) page.top += paragraph(note);
  page.sections.push_back({"batches", "Batches", batches_html(found)});
  const auto& learned = found.learned();
  const auto of = fmt::format("Of {} of {}: {}.", counted(std::ssize(learned.data.images), "image"),
                              learned.name, learned.seen);
  if (!found.distributions.empty())
    page.sections.push_back(
        {"figures", "Figures", paragraph(of) + histograms_html(found.distributions)});
  if (!learned.coverage.empty())
    page.sections.push_back({"anchors", "What the anchors reach", anchors_html(learned)});
  page.sections.push_back({"classes", "Classes", classes_html(found)});
  for (const auto* split : {&found.train, &found.val})
    if (*split)
      page.sections.push_back({split == &found.train ? "photos" : "validation",
                               "Images of " + (*split)->view.name, photos_html(**split)});
  page.footer = "Made by <code>trainer inspect</code>.";
  return page.html();
}

}  // namespace millrace::cli
