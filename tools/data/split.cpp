#include "millrace/tools/data/split.h"

#include <algorithm>
#include <numeric>

#include "millrace/base/random.h"

namespace millrace::advice {
namespace {

constexpr double kBroken = 1e6;  // cost of a violated rule, above any unevenness
constexpr int kPasses = 20;      // maximum passes over all groups; two or three are usual

/// A group of images that move together.
struct Group {
  double images = 0;
  std::vector<std::pair<std::size_t, double>> classes;  // classes, and images with each
  bool validates = false;
};

/// Moves groups between the two sides while this lowers the cost: the sum over classes of squared
/// differences from the wanted share, plus penalties for violated rules.
class Division {
 public:
  Division(std::vector<Group> groups, std::size_t classes, double share)
      : groups_(std::move(groups)), share_(share), all_(classes), validating_(classes) {
    for (const auto& group : groups_) {
      images_ += group.images;
      for (const auto& [label, count] : group.classes) {
        all_[label].groups += 1;
        all_[label].images += count;
      }
    }
    labels_ = static_cast<double>(
        std::ranges::count_if(all_, [](const Count& one) { return one.groups > 0; }));
  }

  /// Moves a group for each class first, rarest classes first, then runs passes over all groups
  /// while they lower the cost.
  void assign_groups(const std::vector<std::size_t>& order) {
    std::vector<std::vector<std::size_t>> of_class(all_.size());
    for (const auto g : order)
      for (const auto& [label, count] : groups_[g].classes) of_class[label].push_back(g);
    std::vector<std::size_t> rarest(all_.size());
    std::iota(rarest.begin(), rarest.end(), std::size_t{0});
    std::ranges::stable_sort(rarest, {}, [&](std::size_t label) { return all_[label].groups; });
    for (const auto label : rarest) {
      if (all_[label].groups < 2 || validating_[label].groups > 0) continue;
      const auto best =
          std::ranges::min_element(of_class[label], {}, [&](std::size_t g) { return gain(g); });
      if (gain(*best) < 0) move(*best);
    }
    for (int pass = 0, moved = 1; pass < kPasses && moved > 0; ++pass) {
      moved = 0;
      for (const auto g : order)
        if (gain(g) < -1e-9) move(g), ++moved;
    }
  }

  const std::vector<Group>& groups() const { return groups_; }

 private:
  struct Count {
    double groups = 0, images = 0;
  };

  static double unevenness(double has, double wanted) {
    return wanted > 0 ? (has - wanted) * (has - wanted) / wanted : 0;
  }

  /// Returns the cost of a class for its counts on the validation side.
  double cost_of(std::size_t label, const Count& validating) const {
    const auto& all = all_[label];
    double cost = unevenness(validating.images, share_ * all.images) / labels_;
    if (all.groups < 2) return cost + (validating.groups > 0 ? 2 * kBroken : 0);
    if (validating.groups == 0) cost += kBroken;
    if (validating.groups == all.groups) cost += 2 * kBroken;  // no training images, which is worse
    return cost;
  }
  /// Returns the cost of the number of validation images.
  double cost_of(double validating) const {
    double cost = unevenness(validating, share_ * images_);
    if (validating == 0 || validating == images_) cost += 1e3 * kBroken * images_;
    if (validating > std::max(1., kMostValidation * images_)) cost += 1e2 * kBroken * validating;
    return cost;
  }

  /// Returns the change of the cost if a group moves to the other side.
  double gain(std::size_t g) const {
    const auto& group = groups_[g];
    const double sign = group.validates ? -1 : 1;
    double sum = cost_of(validating_images_ + sign * group.images) - cost_of(validating_images_);
    for (const auto& [label, count] : group.classes) {
      auto then = validating_[label];
      then.groups += sign, then.images += sign * count;
      sum += cost_of(label, then) - cost_of(label, validating_[label]);
    }
    return sum;
  }

  void move(std::size_t g) {
    auto& group = groups_[g];
    const double sign = group.validates ? -1 : 1;
    validating_images_ += sign * group.images;
    for (const auto& [label, count] : group.classes) {
      validating_[label].groups += sign;
      validating_[label].images += sign * count;
    }
    group.validates = !group.validates;
  }

  std::vector<Group> groups_;
  double share_, images_ = 0, labels_ = 0, validating_images_ = 0;
  std::vector<Count> all_, validating_;  // by class
};

std::vector<Group> groups_of(std::span<const SplitImage> images) {
  std::vector<Group> groups;
  for (const auto& image : images) {
    if (image.group >= groups.size()) groups.resize(image.group + 1);
    auto& group = groups[image.group];
    group.images += 1;
    for (const auto label : image.classes) {
      const auto known =
          std::ranges::find(group.classes, label, [](const auto& one) { return one.first; });
      if (known == group.classes.end())
        group.classes.emplace_back(label, 1);
      else
        known->second += 1;
    }
  }
  return groups;
}

}  // namespace

double validation_share(std::size_t images) {
  constexpr double kShare = .2, kMost = 5000;
  return std::min(kShare, kMost / static_cast<double>(std::max<std::size_t>(images, 1)));
}

std::vector<bool> choose_split(std::span<const SplitImage> images, std::size_t classes,
                               double share, std::uint64_t seed) {
  auto groups = groups_of(images);
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t g) { return Rng{seed, g}(); });
  std::vector<bool> validates(images.size());
  if (groups.size() < 2) return validates;
  Division division(std::move(groups), classes, share);
  division.assign_groups(order);
  for (std::size_t i = 0; i < images.size(); ++i)
    validates[i] = division.groups()[images[i].group].validates;
  return validates;
}

}  // namespace millrace::advice
