// Sources of a flow, and views that combine sources without copying samples.
//
//   const auto photos = list(open_photos()), drawings = list(open_drawings());
//   auto flow = from(mix<Picture>({photos, drawings}, {0.8, 0.2})).map(Decode{}).start({...});
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// Samples by number. Thread-safe.
template <class T>
class Source {
 public:
  virtual ~Source() = default;
  virtual std::int64_t size() const = 0;
  /// REQUIRES: 0 <= index < size().
  virtual T operator[](std::int64_t index) const = 0;
  /// Returns the sample without its expensive parts, such as pixels or outlines. Used to plan
  /// batches, for filters right after the source, and to name the sample in reports.
  virtual T about(std::int64_t index) const { return (*this)[index]; }
  /// Announces that the sample will be read soon, so that a source of remote bytes starts to fetch
  /// it. Never waits, never throws.
  virtual void expect(std::int64_t) const {}
  /// Returns the average times per epoch that each sample is taken; empty = once. See Order.
  virtual std::vector<double> repeats() const { return {}; }
};

template <class T>
using SourcePtr = std::shared_ptr<const Source<T>>;

/// Returns the repeats of a source, one per sample even if all are 1.
template <class T>
std::vector<double> repeats_or_ones(const Source<T>& source) {
  auto repeats = source.repeats();
  if (repeats.empty()) repeats.assign(static_cast<std::size_t>(source.size()), 1.0);
  return repeats;
}

/// Returns the samples of an epoch, repeats included.
template <class T>
double epoch_length(const Source<T>& source) {
  const auto repeats = repeats_or_ones(source);
  return std::accumulate(repeats.begin(), repeats.end(), 0.0);
}

/// Returns a source of `size` samples made by a function of their numbers. Throws
/// std::invalid_argument for a negative size.
template <class F>
auto generate(std::int64_t size, F function) {
  using T = std::decay_t<std::invoke_result_t<const F&, std::int64_t>>;
  class Generated final : public Source<T> {
   public:
    Generated(std::int64_t count, F make) : size_(count), make_(std::move(make)) {}
    std::int64_t size() const override { return size_; }
    T operator[](std::int64_t index) const override { return make_(index); }

   private:
    std::int64_t size_;
    F make_;
  };
  if (size < 0)
    throw std::invalid_argument("a source cannot have " + std::to_string(size) + " samples");
  return SourcePtr<T>(std::make_shared<const Generated>(size, std::move(function)));
}

/// Returns a source of the values of a list.
template <class T>
SourcePtr<T> list(std::vector<T> values) {
  const auto size = std::ssize(values);
  return generate(size, [values = std::move(values)](std::int64_t index) {
    return values[static_cast<std::size_t>(index)];
  });
}

/// Samples of other sources under new numbers.
template <class T>
class SourceView final : public Source<T> {
 public:
  /// Returns the source that contains sample `index`, and the sample's number there.
  using Find = std::function<std::pair<std::size_t, std::int64_t>(std::int64_t index)>;
  SourceView(std::vector<SourcePtr<T>> of, std::int64_t size, Find find,
             std::vector<double> repeats)
      : of_(std::move(of)), size_(size), find_(std::move(find)), repeats_(std::move(repeats)) {}

  std::int64_t size() const override { return size_; }
  T operator[](std::int64_t index) const override {
    const auto [source, own] = find_(index);
    return (*of_[source])[own];
  }
  T about(std::int64_t index) const override {
    const auto [source, own] = find_(index);
    return of_[source]->about(own);
  }
  void expect(std::int64_t index) const override {
    const auto [source, own] = find_(index);
    of_[source]->expect(own);
  }
  std::vector<double> repeats() const override { return repeats_; }

 private:
  std::vector<SourcePtr<T>> of_;
  std::int64_t size_;
  Find find_;
  std::vector<double> repeats_;
};

/// Returns the same samples with these repeats. Throws std::invalid_argument unless there is one
/// finite repeat >= 0 per sample.
template <class T>
SourcePtr<T> repeated(SourcePtr<T> source, std::vector<double> repeats) {
  const auto size = source->size();
  if (std::ssize(repeats) != size)
    throw std::invalid_argument("a source of " + std::to_string(size) + " samples has " +
                                std::to_string(repeats.size()) + " repeats");
  for (const double times : repeats)
    if (!std::isfinite(times) || times < 0)
      throw std::invalid_argument("a sample cannot occur " + std::to_string(times) + " times");
  const auto same = [](std::int64_t index) { return std::pair(std::size_t{0}, index); };
  return std::make_shared<const SourceView<T>>(std::vector{std::move(source)}, size, same,
                                               std::move(repeats));
}

/// Returns the samples with these numbers, in this order. Throws std::invalid_argument for an
/// unknown number.
template <class T>
SourcePtr<T> subset(SourcePtr<T> source, std::vector<std::int64_t> numbers) {
  const auto all = source->repeats();
  std::vector<double> repeats;
  for (const auto k : numbers) {
    if (k < 0 || k >= source->size())
      throw std::invalid_argument("a source of " + std::to_string(source->size()) +
                                  " samples has no sample " + std::to_string(k));
    if (!all.empty()) repeats.push_back(all[static_cast<std::size_t>(k)]);
  }
  const auto size = std::ssize(numbers);
  const auto find = [numbers = std::move(numbers)](std::int64_t index) {
    return std::pair(std::size_t{0}, numbers[static_cast<std::size_t>(index)]);
  };
  return std::make_shared<const SourceView<T>>(std::vector{std::move(source)}, size, find,
                                               std::move(repeats));
}

/// Returns the samples for whose numbers `wanted` is true.
template <class T, class Wanted>
SourcePtr<T> select(SourcePtr<T> source, Wanted wanted) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < source->size(); ++i)
    if (wanted(i)) numbers.push_back(i);
  return subset(std::move(source), std::move(numbers));
}

/// Returns the first `count` samples, or all if there are fewer.
template <class T>
SourcePtr<T> take(SourcePtr<T> source, std::int64_t count) {
  return select(std::move(source), [count](std::int64_t i) { return i < count; });
}

/// Returns the samples of all sources, one source after the other. Throws std::invalid_argument if
/// there is no source.
template <class T>
SourcePtr<T> concat(std::vector<SourcePtr<T>> sources) {
  if (sources.empty()) throw std::invalid_argument("no sources to combine");
  const bool repeat =
      std::ranges::any_of(sources, [](const auto& s) { return !s->repeats().empty(); });
  std::vector<double> repeats;
  std::vector<std::int64_t> ends;
  for (const auto& source : sources) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + source->size());
    const auto own = repeat ? repeats_or_ones(*source) : std::vector<double>();
    repeats.insert(repeats.end(), own.begin(), own.end());
  }
  const auto size = ends.back();
  const auto find = [ends = std::move(ends)](std::int64_t index) {
    const auto k = static_cast<std::size_t>(std::ranges::upper_bound(ends, index) - ends.begin());
    return std::pair(k, k == 0 ? index : index - ends[k - 1]);
  };
  return std::make_shared<const SourceView<T>>(std::move(sources), size, find, std::move(repeats));
}

/// Mixes sources: source k makes up weights[k] / sum of each epoch, to within one sample, in
/// proportion to its own repeats. An epoch is as long as those of all sources together; see
/// `fixed_size` for another length. Throws std::invalid_argument unless there is one finite weight
/// >= 0 per source, at least one above 0, and none above 0 for a source without samples.
template <class T>
SourcePtr<T> mix(std::vector<SourcePtr<T>> sources, const std::vector<double>& weights) {
  if (weights.size() != sources.size())
    throw std::invalid_argument(std::to_string(sources.size()) + " sources have " +
                                std::to_string(weights.size()) + " weights");
  double sum = 0, all = 0;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (!std::isfinite(weights[k]) || weights[k] < 0)
      throw std::invalid_argument("a source cannot have the weight " + std::to_string(weights[k]));
    if (weights[k] > 0 && epoch_length(*sources[k]) == 0)
      throw std::invalid_argument("source " + std::to_string(k + 1) +
                                  " of a mix has a weight but no samples");
    sum += weights[k];
    all += epoch_length(*sources[k]);
  }
  if (!(sum > 0)) throw std::invalid_argument("all weights of a mix are 0");
  std::vector<double> repeats;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const double own = epoch_length(*sources[k]);
    for (const double times : repeats_or_ones(*sources[k]))
      repeats.push_back(own > 0 ? times / own * all * weights[k] / sum : 0);
  }
  return repeated(concat(std::move(sources)), std::move(repeats));
}

/// Returns pairs of samples with the same number and the repeats of the first source. Throws
/// std::invalid_argument if the sizes differ or the second source has repeats.
template <class A, class B>
SourcePtr<std::pair<A, B>> zip(SourcePtr<A> first, SourcePtr<B> second) {
  class Zipped final : public Source<std::pair<A, B>> {
   public:
    Zipped(SourcePtr<A> a, SourcePtr<B> b) : a_(std::move(a)), b_(std::move(b)) {}
    std::int64_t size() const override { return a_->size(); }
    std::pair<A, B> operator[](std::int64_t index) const override {
      return {(*a_)[index], (*b_)[index]};
    }
    std::pair<A, B> about(std::int64_t index) const override {
      return {a_->about(index), b_->about(index)};
    }
    void expect(std::int64_t index) const override {
      a_->expect(index);
      b_->expect(index);
    }
    std::vector<double> repeats() const override { return a_->repeats(); }

   private:
    SourcePtr<A> a_;
    SourcePtr<B> b_;
  };
  if (first->size() != second->size())
    throw std::invalid_argument("sources of " + std::to_string(first->size()) + " and " +
                                std::to_string(second->size()) + " samples cannot be paired");
  if (!second->repeats().empty())
    throw std::invalid_argument("the second source of a pair cannot repeat its samples");
  return std::make_shared<const Zipped>(std::move(first), std::move(second));
}

/// Multiplies each sample's repeats by `times`. Throws std::invalid_argument unless `times` > 0.
template <class T>
SourcePtr<T> repeat(SourcePtr<T> source, double times) {
  if (!(times > 0) || !std::isfinite(times))
    throw std::invalid_argument("a source cannot be repeated " + std::to_string(times) + " times");
  auto repeats = repeats_or_ones(*source);
  for (auto& each : repeats) each *= times;
  return repeated(std::move(source), std::move(repeats));
}

/// Scales an epoch to `count` samples, whatever the size of the source. Throws
/// std::invalid_argument if `count` < 1 or the source has no samples.
template <class T>
SourcePtr<T> fixed_size(SourcePtr<T> source, std::int64_t count) {
  const double now = epoch_length(*source);
  if (count < 1 || now == 0)
    throw std::invalid_argument("an epoch of " + std::to_string(count) +
                                " samples cannot be drawn from a source of " +
                                std::to_string(source->size()) + " samples");
  return repeat(std::move(source), static_cast<double>(count) / now);
}

/// Repeats rare categories: a sample is taken max(1, sqrt(threshold / f(c))) times as often, where
/// c is the rarest of its categories and f(c) the fraction of samples with c (repeat-factor
/// sampling: Gupta et al., LVIS, 2019, appendix B.3). `categories(index)`, called once per sample,
/// returns a range of integers in any order, duplicates allowed. Throws std::invalid_argument
/// unless threshold > 0.
template <class T, class Categories>
SourcePtr<T> repeat_factor(SourcePtr<T> source, double threshold, Categories categories) {
  if (!(threshold > 0)) throw std::invalid_argument("a repeat factor's threshold must be above 0");
  const auto size = source->size();
  std::vector<std::vector<std::int64_t>> of_sample;
  std::map<std::int64_t, std::int64_t> samples_with;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto found = categories(i);
    auto& own = of_sample.emplace_back(found.begin(), found.end());
    std::ranges::sort(own);
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const auto category : own) ++samples_with[category];
  }
  auto repeats = repeats_or_ones(*source);
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    double factor = 1;
    for (const auto category : of_sample[i])
      factor = std::max(factor, std::sqrt(threshold * static_cast<double>(size) /
                                          static_cast<double>(samples_with[category])));
    repeats[i] *= factor;
  }
  return repeated(std::move(source), std::move(repeats));
}

}  // namespace millrace
