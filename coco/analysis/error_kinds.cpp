#include "millrace/coco/analysis/error_kinds.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "millrace/coco/evaluation/precision_envelope.h"

namespace millrace::coco {
namespace {

/// The role of a detection in the list of a category.
enum class Role : std::uint8_t {
  hit,
  mendable,  // wrong; becomes a hit when its error is fixed
  wrong,     // wrong; removed when its error is fixed
  guest,  // a detection of another category; becomes a hit in this list when its category is fixed
};

struct Point {
  std::uint64_t score_key;     // key of descending_score_key
  std::uint32_t image, match;  // tie breakers
  Role role;
  ErrorKind kind;  // kind of error; unused for hits
};

enum class Answer { right, wrong, absent };

/// Returns AP50 of points ordered by falling score. `answer` classifies each point.
template <class Answers>
double ap50(const std::vector<Point>& points, std::int64_t objects, const Answers& answer) {
  if (objects == 0) return 0;
  static const Recalls recalls;
  const RecallPoints recall_points(static_cast<std::uint64_t>(objects), recalls);
  std::array<double, kRecalls> precision{};
  PrecisionEnvelope envelope(precision);
  std::uint64_t hits = 0, counted = 0;
  for (const Point& point : points) {
    const Answer what = answer(point);
    counted += what != Answer::absent;
    if (what == Answer::right) envelope.hit(++hits, counted, recall_points);
  }
  return envelope.average();
}

Answer as_it_is(const Point& point) {
  if (point.role == Role::guest) return Answer::absent;
  return point.role == Role::hit ? Answer::right : Answer::wrong;
}

/// Numbers of objects of a category that count.
struct ObjectCounts {
  std::int64_t all = 0, found = 0, missed = 0;
};

/// Fills in AP50 and the cost of each kind of error.
void fill_costs(const std::vector<Point>& points, const ObjectCounts& objects, ErrorCosts& costs) {
  const double now = costs.ap50 = ap50(points, objects.all, as_it_is);
  const auto gain = [&](std::int64_t count, const auto& answer) {
    return ap50(points, count, answer) - now;
  };
  costs.cost[static_cast<std::size_t>(ErrorKind::missed)] =
      gain(objects.all - objects.missed, as_it_is);
  for (std::size_t e = 0; e < static_cast<std::size_t>(ErrorKind::missed); ++e) {
    const auto kind = static_cast<ErrorKind>(e);
    costs.cost[e] = gain(objects.all, [&](const Point& point) {
      if (point.role == Role::hit || point.kind != kind) return as_it_is(point);
      // A detection with a wrong category moves from this list to that of its object, where it is a
      // guest.
      const bool here = point.role == Role::guest ||
                        (point.role == Role::mendable && kind == ErrorKind::location);
      return here ? Answer::right : Answer::absent;
    });
  }
  costs.false_positives = gain(objects.all, [](const Point& point) {
    return point.role == Role::hit ? Answer::right : Answer::absent;
  });
  costs.false_negatives = gain(objects.found, as_it_is);
}

/// Returns the sums of the counts and the means of the costs over the categories with objects.
ErrorCosts of_all(const std::vector<ErrorCosts>& categories) {
  ErrorCosts all;
  double count = 0;
  for (const ErrorCosts& one : categories) {
    for (std::size_t e = 0; e < kErrorKinds; ++e) all.count[e] += one.count[e];
    if (one.ap50 < 0) continue;
    ++count;
    all.ap50 = std::max(all.ap50, 0.) + one.ap50;
    for (std::size_t e = 0; e < kErrorKinds; ++e) all.cost[e] += one.cost[e];
    all.false_positives += one.false_positives;
    all.false_negatives += one.false_negatives;
  }
  if (count == 0) return all;
  for (double* figure : {&all.ap50, &all.false_positives, &all.false_negatives}) *figure /= count;
  // Precision is sampled at 101 recalls, so a fix can lower AP slightly. That counts as no gain, as
  // in TIDE.
  for (double& cost : all.cost) cost = std::max(cost / count, 0.);
  return all;
}

}  // namespace

std::optional<ErrorKind> costliest_kind(const ErrorCosts& errors) {
  const auto most = std::ranges::max_element(errors.cost);
  if (!(*most > 0)) return {};
  return static_cast<ErrorKind>(most - errors.cost.begin());
}

ErrorKinds::ErrorKinds(const Dataset& truth, const Matches& matches)
    : matches_(matches), verdicts_(matches.detections.size()), objects_(truth.annotations.size()) {}

void ErrorKinds::add(const ImagePairs& pairs) {
  std::vector<bool> taken(pairs.objects.size()), claimed(pairs.objects.size());
  for (const auto& object : pairs.objects)
    if (!object.crowd) objects_[object.annotation] = {object.category, Fate::missed, 0};
  const auto outcome = [&](std::size_t f) { return matches_.outcome(pairs.found[f].match); };
  for (std::size_t f = 0; f < pairs.found.size(); ++f) {
    const std::size_t o = best_free(pairs, f, taken, /*own_category_only=*/true);
    if (o == pairs.objects.size()) continue;
    taken[o] = true;
    if (!(outcome(f).hit & 1)) continue;
    Object& object = objects_[pairs.objects[o].annotation];
    object.fate = Fate::found;
    object.found_at = matches_.detections[pairs.found[f].match].score;
  }
  for (std::size_t f = 0; f < pairs.found.size(); ++f) {
    Verdict& verdict = verdicts_[pairs.found[f].match];
    if (outcome(f).ignored & 1)
      verdict.what = Verdicts::kIgnored;
    else if (outcome(f).hit & 1)
      verdict.what = Verdicts::kHit;
    else
      verdict = this->verdict(pairs, f, taken, claimed);
  }
  for (std::size_t o = 0; o < pairs.objects.size(); ++o)
    if (claimed[o]) objects_[pairs.objects[o].annotation].fate = Fate::mendable;
}

ErrorKinds::Verdict ErrorKinds::verdict(const ImagePairs& pairs, std::size_t f,
                                        const std::vector<bool>& taken,
                                        std::vector<bool>& claimed) const {
  const std::size_t none = pairs.objects.size();
  double own = 0, foreign = 0, own_taken = 0;  // the largest overlaps
  std::size_t own_best = none, foreign_best = none;
  for (std::size_t o = 0; o < none; ++o) {
    if (pairs.objects[o].crowd) continue;
    const double overlap = pairs.overlap(f, o);
    if (!pairs.same_category(f, o)) {
      if (overlap > foreign) foreign = overlap, foreign_best = o;
      continue;
    }
    if (overlap > own) own = overlap, own_best = o;
    if (taken[o]) own_taken = std::max(own_taken, overlap);
  }
  const auto error = [&](ErrorKind kind, std::size_t o) {
    Verdict result{static_cast<std::uint8_t>(kind), kNothing};
    if (o == none || taken[o] || claimed[o]) return result;
    claimed[o] = true;  // claimed by the highest score; later detections cannot have this object
    result.mended = pairs.objects[o].category;
    return result;
  };
  if (own >= kBackground && own <= kForeground) return error(ErrorKind::location, own_best);
  if (foreign >= kForeground) return error(ErrorKind::category, foreign_best);
  if (own_taken >= kForeground) return error(ErrorKind::duplicate, none);
  if (std::max(own, foreign) <= kBackground) return error(ErrorKind::background, none);
  return error(ErrorKind::both, none);
}

ErrorReport ErrorKinds::report() const {
  const std::size_t categories = matches_.extent.categories;
  std::vector<ObjectCounts> objects(categories);
  for (const auto& [category, fate, found_at] : objects_) {
    objects[category].all += fate != Fate::does_not_count;
    objects[category].found += fate == Fate::found;
    objects[category].missed += fate == Fate::missed;
  }
  std::vector<std::vector<Point>> lists(categories);
  ErrorReport report;
  report.categories.resize(categories);
  for (std::size_t k = 0; k < categories; ++k) {
    auto& count = report.categories[k].count;
    count[static_cast<std::size_t>(ErrorKind::missed)] = objects[k].missed;
    for (const std::uint32_t i : matches_.of(k)) {
      const auto [what, mended] = verdicts_[i];
      if (what == Verdicts::kIgnored) continue;
      const Scored& one = matches_.detections[i];
      Point point{descending_score_key(one.score), one.image, i, Role::hit, {}};
      if (what != Verdicts::kHit) {
        ++count[what];
        point.kind = static_cast<ErrorKind>(what);
        point.role = mended == kNothing ? Role::wrong : Role::mendable;
      }
      lists[k].push_back(point);
      if (point.role == Role::mendable && point.kind == ErrorKind::category) {
        point.role = Role::guest;
        lists[mended].push_back(point);
      }
    }
  }
  tbb::parallel_for(std::size_t{0}, categories, [&](std::size_t k) {
    std::ranges::sort(lists[k], {},
                      [](const Point& p) { return std::tuple(p.score_key, p.image, p.match); });
    if (objects[k].all > 0) fill_costs(lists[k], objects[k], report.categories[k]);
  });
  report.all = of_all(report.categories);
  return report;
}

Verdicts ErrorKinds::verdicts(std::size_t detections) const {
  Verdicts all{std::vector<std::uint8_t>(detections, Verdicts::kIgnored), {}};
  for (std::size_t i = 0; i < verdicts_.size(); ++i)
    all.detections[matches_.detections[i].detection] = verdicts_[i].what;
  for (const auto& [category, fate, found_at] : objects_)
    all.found_at.push_back(fate == Fate::does_not_count ? -1
                           : fate == Fate::found        ? found_at
                                                        : std::numeric_limits<double>::quiet_NaN());
  return all;
}

}  // namespace millrace::coco
