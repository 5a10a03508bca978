#include "millrace/report/loss_section.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "millrace/page/html.h"
#include "millrace/report/metric_charts.h"

namespace millrace::report {
namespace {

bool is_loss(const std::string& name) {
  return name.starts_with("loss") || name.starts_with("val/");
}

}  // namespace

page::Section loss_section(std::span<const RunFiles> runs) {
  auto losses = metric_names(runs, is_loss);
  std::string out;
  if (losses.empty()) {
    out = "<p>No losses yet: the first line of metrics.jsonl brings them.</p>\n";
    return {"losses", "Losses", out};
  }
  const page::LineChart like{
      .title = "Losses", .x_name = "step", .y_name = "loss", .logarithmic_too = true};
  const auto norm = metric_charts(runs, {"gradient_norm"},
                                  {.title = "Norm of the gradient",
                                   .x_name = "step",
                                   .y_name = "norm",
                                   .logarithmic_too = true});
  const auto rate =
      metric_charts(runs, {"lr"}, {.title = "Learning rate", .x_name = "step", .y_name = "rate"});
  if (runs.size() == 1) {
    out += side_by_side(metric_charts(runs, losses, like) + rate + norm);
  } else {
    std::erase(losses, "loss");
    out += side_by_side(metric_charts(runs, {"loss"}, like) + rate);
    out += folded(runs, "Each loss, and the norm of the gradient",
                  metric_charts(runs, losses, like) + norm);
  }
  for (const RunFiles& run : runs) {
    const auto& bad = run.metrics.of("bad_steps");
    if (!bad.empty() && bad.back().value > 0)
      out += fmt::format(
          "<p class=\"verdict warning\">{}: {:.0f} steps had a gradient that is not "
          "finite and changed nothing.</p>\n",
          page::escaped(run.name), bad.back().value);
  }
  return {"losses", "Losses", std::move(out)};
}

}  // namespace millrace::report
