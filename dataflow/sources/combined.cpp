// Sources that combine other sources: the views of millrace/dataflow/engine/source.h by name.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "millrace/dataflow/sources/detection_sources.h"

namespace millrace {
namespace {

struct OfMany {
  Options::Strings of;
  void describe(Options& o) { o.add("of", of, "names of the sources"); }
  void check() const {
    if (of.empty()) throw std::invalid_argument("no sources to combine; name them in `of = [...]`");
  }
};

struct MixOptions : OfMany {
  Options::Reals weights;
  void describe(Options& o) {
    OfMany::describe(o);
    o.add("weights", weights, "shares of the sources in an epoch, relative to their sum",
          {.min = 0});
  }
  void check() const {
    OfMany::check();
    if (weights.size() != of.size())
      throw std::invalid_argument(std::to_string(of.size()) + " sources have " +
                                  std::to_string(weights.size()) + " weights");
    if (std::ranges::count(weights, 0.0) == std::ssize(weights))
      throw std::invalid_argument("all weights of a mix are 0");
  }
};

struct OfOne {
  Options::Strings of;
  void describe(Options& o) { o.add("of", of, "name of the source"); }
  void check() const {
    if (of.size() != 1)
      throw std::invalid_argument("needs one source in `of = \"...\"`, not " +
                                  std::to_string(of.size()));
  }
};

struct TakeOptions : OfOne {
  std::int64_t count = 1;
  void describe(Options& o) {
    OfOne::describe(o);
    o.add("count", count, "maximum number of images", {.min = 1, .unit = "images"});
  }
};

struct FixedSizeOptions : OfOne {
  std::int64_t count = 1;
  void describe(Options& o) {
    OfOne::describe(o);
    o.add("count", count, "images per epoch, whatever the size of the source",
          {.min = 1, .unit = "images"});
  }
};

struct RepeatOptions : OfOne {
  double times = 1;
  void describe(Options& o) {
    OfOne::describe(o);
    o.add("times", times, "average number of times that each image occurs per epoch",
          {.min = 1e-9, .max = 1e9});
  }
};

struct RepeatFactorOptions : OfOne {
  double threshold = 0.001;
  void describe(Options& o) {
    OfOne::describe(o);
    o.add("threshold", threshold, "fraction of images below which a class counts as rare",
          {.min = 1e-9, .max = 1});
  }
};

const bool registered[] = {
    register_source<OfMany>(
        "concat", "all images of several sources",
        [](const auto&, const SourceContext& context) { return concat(context.of); }),
    register_source<MixOptions>("mix", "several sources, each with a given share of every epoch",
                                [](const auto& options, const SourceContext& context) {
                                  return mix(context.of, options.weights);
                                }),
    register_source<TakeOptions>("take", "the first images of a source",
                                 [](const auto& options, const SourceContext& context) {
                                   return take(context.of[0], options.count);
                                 }),
    register_source<FixedSizeOptions>(
        "fixed_size", "a source with a given number of images per epoch, different ones each time",
        [](const auto& options, const SourceContext& context) {
          return fixed_size(context.of[0], options.count);
        }),
    register_source<RepeatOptions>("repeat", "a source repeated within each epoch",
                                   [](const auto& options, const SourceContext& context) {
                                     return repeat(context.of[0], options.times);
                                   }),
    register_source<RepeatFactorOptions>(
        "repeat_factor", "a source with images of rare classes repeated, as for LVIS",
        [](const auto& options, const SourceContext& context) {
          return repeat_factor(context.of[0], options.threshold,
                               [source = context.of[0]](std::int64_t index) {
                                 return source->about(index).objects.classes;
                               });
        }),
};

}  // namespace
}  // namespace millrace
