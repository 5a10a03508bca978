#include "millrace/migration/translation/epoch_length.h"

#include <fmt/format.h>

#include <cmath>

namespace millrace {

double EpochLength::epochs(double steps, const Found& from) const {
  if (!images)
    from.fail(
        "how many epochs are that? Say how many images of the training split have an object: "
        "--images N");
  return rounded_epochs(steps * images_per_step / static_cast<double>(*images));
}

std::string EpochLength::how() const {
  return images ? fmt::format("x {} images / {}", images_per_step, *images) : "";
}

double rounded_epochs(double epochs) { return std::round(epochs * 1e4) / 1e4; }

}  // namespace millrace
