#include "millrace/report/head_section.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "millrace/report/metric_charts.h"

namespace millrace::report {

page::Section head_section(std::span<const RunFiles> runs) {
  // "box/accuracy" belongs to "box"; counts have a chart of their own
  std::map<std::pair<std::string, bool>, std::vector<std::string>> groups;
  for (const std::string& name : metric_names(runs, [](const std::string& one) {
         return one.find('/') != std::string::npos && !one.starts_with("time/") &&
                !one.starts_with("val/") && one.find("bbox/") == std::string::npos &&
                one.find("segm/") == std::string::npos;
       })) {
    bool counts = false;
    for (const RunFiles& run : runs)
      for (const MetricValue& one : run.metrics.of(name)) counts |= one.value > 1.5;
    groups[{name.substr(0, name.find('/')), counts}].push_back(name);
  }
  if (groups.empty()) return {};
  std::string out =
      "<details><summary>Accuracies, recall and counts of the heads</summary>\n"
      "<div class=\"pair\">\n";
  for (const auto& [group, metrics] : groups)
    out += metric_charts(runs, metrics,
                         {.title = group.first + (group.second ? ", counts" : ", shares"),
                          .x_name = "step",
                          .y_name = group.second ? "count" : "share"});
  return {"heads", "Heads", out + "</div></details>\n"};
}

}  // namespace millrace::report
