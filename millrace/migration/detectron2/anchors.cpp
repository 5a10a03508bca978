#include <algorithm>
#include <vector>

#include "millrace/migration/detectron2/model_parts.h"
#include "millrace/migration/translation/anchors_of.h"

namespace millrace::detectron2 {
namespace {

std::vector<std::vector<double>> lists_of(const Found& found) {
  if (!found.need().is_list() || found.need().list().empty()) found.fail("a list is needed");
  std::vector<std::vector<double>> all;
  if (!found.need().list().front().is_list()) return {found.reals()};
  for (const auto& one : found.need().list())
    all.push_back(Found{&one, found.path, one.place}.reals());
  return all;
}

/// Sizes for each of five levels.
std::vector<std::vector<double>> levels_of(const Found& found) {
  auto all = lists_of(found);
  if (all.size() == 1) all.assign(5, all.front());
  return all;
}

/// The sizes of C4's anchors.
std::vector<double> one_list(const Found& found) {
  const auto all = lists_of(found);
  if (all.size() != 1) found.fail("C4 is one map: one list of sizes is needed");
  return all.front();
}

}  // namespace

void read_anchors(Translation& t) {
  const auto sizes = t.read("MODEL.ANCHOR_GENERATOR.SIZES");
  if (is_on_c4(t))
    t.put("model.anchors.sizes", one_list(sizes), sizes);
  else
    put_anchor_sizes(t, levels_of(sizes), sizes);
  const auto ratios = t.read("MODEL.ANCHOR_GENERATOR.ASPECT_RATIOS");
  const auto each = lists_of(ratios);
  if (!std::ranges::all_of(each, [&](const auto& one) { return one == each.front(); }))
    ratios.fail("the levels have different ratios, which model.anchors.aspect_ratios cannot say");
  t.put("model.anchors.aspect_ratios", each.front(), ratios);
  t.expect("MODEL.ANCHOR_GENERATOR.OFFSET", literal(0.0), "anchors stand at the corners of cells");
  t.read("MODEL.ANCHOR_GENERATOR.ANGLES");
}

}  // namespace millrace::detectron2
