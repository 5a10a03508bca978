#include "millrace/study/difference.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "millrace/base/text.h"

namespace millrace::study {
namespace {

/// The least difference that these seeds can show, and what one of this size takes.
std::string outlook(const Difference& it, std::size_t images) {
  const std::size_t n = it.by_seed.size();
  const auto seeds = [](std::size_t count) {
    return counted(static_cast<long long>(count), "seed");
  };
  const double least = 100 * detectable(it.noise, n), size = 100 * std::abs(it.interval.value);
  std::string text = fmt::format(
      "{} on these {} can show differences of {:.2f} AP or more (power 80 %, alpha 5 %)", seeds(n),
      counted(static_cast<long long>(images), "image"), least);
  if (size == 0) return text + ".";
  if (const auto needed = seeds_needed(it.interval.value, it.noise))
    return text + fmt::format("; one of {:.2f} AP takes {}.", size, seeds(*needed));
  const double more = images_needed(it.interval.value, it.noise);
  return text + fmt::format(
                    "; one of {:.2f} AP takes more images, {} times as many or more, "
                    "however many the seeds.",
                    size, more < 10 ? fmt::format("{:.1f}", more) : fmt::format("{:.0f}", more));
}

}  // namespace

Difference difference_of(const std::vector<ApDraws>& variant, const std::vector<ApDraws>& first,
                         double one_seed_p) {
  const std::size_t n = variant.size();
  Difference result;
  for (std::size_t s = 0; s < n; ++s) {
    result.by_seed.push_back(variant[s].whole - first[s].whole);
    result.ap += variant[s].whole / static_cast<double>(n);
    result.first_ap += first[s].whole / static_cast<double>(n);
  }
  const auto drawn = bootstrap(variant, first);
  result.bootstrap = drawn.interval;
  const auto [mean, deviation] = moments(result.by_seed);
  if (n == 1) {
    result.interval = drawn.interval;
    result.p = result.bootstrap_p = one_seed_p;
    result.noise = {std::numeric_limits<double>::quiet_NaN(), drawn.images_deviation};
    return result;
  }
  result.bootstrap_p = drawn.p;
  result.noise = {deviation, drawn.images_deviation};
  const double half = half_width(result.noise, n);
  result.interval = {mean, mean - half, mean + half};
  result.p = p_of(mean, result.noise, n);
  return result;
}

std::string sentence(const Difference& it, std::size_t images) {
  const std::string figures = fmt::format(
      "{:+.2f} AP ({:.2f} against {:.2f}) over {}, 95 % interval {:+.2f} .. {:+.2f}, p {}",
      100 * it.interval.value, 100 * it.ap, 100 * it.first_ap,
      counted(static_cast<long long>(it.by_seed.size()), "seed"), 100 * it.interval.low,
      100 * it.interval.high, it.p < .001 ? "< 0.001" : fmt::format("= {:.3f}", it.p));
  const bool is_better = it.interval.value > 0;
  if (!it.has_several_seeds())
    return fmt::format(
        "{}: {} of the choice of images. One seed says nothing of the chance in "
        "training, which may be larger: train each side with several.",
        figures,
        !it.is_real() ? "within the noise"
        : is_better   ? "better by more than the noise"
                      : "worse by more than the noise");
  return fmt::format("{}: {}. {}", figures,
                     !it.is_real() ? "within noise"
                     : is_better   ? "real, it is better"
                                   : "real, it is worse",
                     outlook(it, images));
}

}  // namespace millrace::study
