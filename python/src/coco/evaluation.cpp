// Python bindings for millrace/coco's evaluator: tables, match details on request, and evaluation
// image by image from several threads.
#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/coco/evaluation/details.h"
#include "python/src/coco/arrays.h"
#include "python/src/coco/bindings.h"
#include "python/src/coco/sets.h"
#include "python/src/coco/shapes.h"

namespace millrace::python {
namespace {

using coco::EvaluateOptions;
using coco::Evaluation;

/// Converts the evaluation parameters given in Python; `areas` are the low and the high end of each
/// range in turn.
void init_options(EvaluateOptions* self, const std::string& iou_type,
                  const std::vector<double>& iou_thrs, const std::vector<double>& rec_thrs,
                  const std::vector<double>& areas, const std::vector<std::string>& area_names,
                  const std::vector<std::uint32_t>& max_dets, bool use_cats,
                  const std::vector<std::int64_t>& cat_ids, const std::vector<double>& sigmas,
                  bool federated) {
  EvaluateOptions options;
  const Task task = task_of(iou_type);
  options.iou = task == Task::bbox   ? coco::IouType::box
                : task == Task::segm ? coco::IouType::mask
                                     : coco::IouType::keypoints;
  if (task == Task::keypoints) options.sigmas = sigmas;
  options.federated = federated;
  options.iou_thresholds = iou_thrs;
  options.recall_thresholds = rec_thrs;
  options.area_ranges.clear();
  for (std::size_t a = 0; 2 * a + 1 < areas.size(); ++a)
    options.area_ranges.push_back(
        {a < area_names.size() ? area_names[a] : "", areas[2 * a], areas[2 * a + 1]});
  options.max_detections = max_dets;
  options.class_agnostic = !use_cats;
  options.category_ids = cat_ids;
  new (self) EvaluateOptions(std::move(options));
}

/// Returns the tables as in pycocotools' `eval`, and the metrics.
nb::dict tables(Evaluation result) {
  const std::size_t t = result.iou_thresholds.size(), r = result.recall_thresholds.size();
  const std::size_t k = result.category_ids.size(), a = result.area_ranges.size();
  const std::size_t m = result.max_detections.size();
  nb::dict all;
  all["precision"] = array_of(std::move(result.precision), {t, r, k, a, m});
  all["recall"] = array_of(std::move(result.recall), {t, k, a, m});
  all["scores"] = array_of(std::move(result.scores), {t, r, k, a, m});
  all["stats"] = array_of(std::move(result.stats), {result.stats.size()});
  all["category_ids"] = array_of(std::move(result.category_ids), {k});
  all["category_ap"] = array_of(std::move(result.category_ap), {k});
  all["unknown_images"] = result.unknown_images;
  all["unknown_categories"] = result.unknown_categories;
  return all;
}

std::vector<std::int64_t> list_of(const Ids& ids) { return {ids.data(), ids.data() + ids.size()}; }

/// Detections and the data set on which they are evaluated.
struct Run {
  std::shared_ptr<const coco::Dataset> truth;
  std::shared_ptr<const Found> found;
  EvaluateOptions options;
  std::vector<std::int64_t> image_ids;  // ascending
};

/// Throws Error if a mask's size differs from its image.
void expect_masks_fit(const Run& run) {
  const coco::Image* image = nullptr;
  const coco::Detections& all = run.found->all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].mask == coco::Detections::kNoMask) continue;
    const coco::MaskExtent& mask = all.mask_of(all[i]).extent;
    if (!image || image->id != all[i].image_id) image = run.truth->find_image(all[i].image_id);
    const bool fits = !image || (mask.height == static_cast<std::uint32_t>(image->height) &&
                                 mask.width == static_cast<std::uint32_t>(image->width));
    if (!fits)
      expect_fit(*run.truth, *image, mask.height, mask.width,
                 fmt::format("detections[{}] (image {})", i, image->id));
  }
}

nb::dict evaluate(const Run& run) {
  Evaluation result;
  {
    const nb::gil_scoped_release free;
    if (run.options.iou == coco::IouType::mask) expect_masks_fit(run);
    result = coco::evaluate(*run.truth, run.found->all, run.options, run.image_ids);
  }
  return tables(std::move(result));
}

/// Returns the match details as flat arrays with ids instead of indices. See MatchDetails for the
/// layout.
nb::dict details(const Run& run, const Ids& image_ids) {
  coco::MatchDetails all;
  std::vector<std::int64_t> dt_ids, gt_ids, cell_images;
  std::vector<double> dt_matches, gt_matches;
  std::vector<std::uint64_t> cells;
  const std::size_t areas = run.options.area_ranges.size();
  const std::size_t thresholds = run.options.iou_thresholds.size();
  const std::vector<std::int64_t> wanted = list_of(image_ids);
  {
    const nb::gil_scoped_release free;
    all = coco::DetailedMatcher(*run.truth, run.found->all, run.options).images(wanted);
    const auto found_id = [&](std::uint32_t at) {
      return run.found->ids.empty() ? std::int64_t{at} + 1 : run.found->ids[at];
    };
    for (const std::uint32_t at : all.detections) dt_ids.push_back(found_id(at));
    gt_ids.resize(all.object_order.size());
    dt_matches.resize(all.detection_matches.size());
    gt_matches.resize(all.object_matches.size());
    for (const auto& cell : all.cells) {
      const std::size_t objects = cell.objects, detections = cell.detections;
      for (const std::uint64_t value :
           {std::uint64_t{cell.category}, std::uint64_t{detections}, std::uint64_t{objects},
            cell.first_detection, cell.first_object, cell.first_overlap})
        cells.push_back(value);
      cell_images.push_back(run.truth->images[cell.image].id);
      const auto object_id = [&](std::size_t place) {
        return run.truth->annotations[all.objects[cell.first_object + place]].id;
      };
      for (std::size_t i = 0; i < areas * objects; ++i) {
        const std::size_t at = areas * cell.first_object + i;
        gt_ids[at] = object_id(all.object_order[at]);
      }
      for (std::size_t i = 0; i < areas * thresholds * objects; ++i) {
        const std::size_t at = areas * thresholds * cell.first_object + i;
        const std::int32_t by = all.object_matches[at];
        gt_matches[at] =
            by < 0 ? 0 : static_cast<double>(dt_ids[cell.first_detection + std::size_t(by)]);
      }
      for (std::size_t i = 0; i < areas * thresholds * detections; ++i) {
        const std::size_t at = areas * thresholds * cell.first_detection + i;
        const std::int32_t of = all.detection_matches[at];
        dt_matches[at] = of < 0 ? 0 : static_cast<double>(object_id(std::size_t(of)));
      }
    }
  }
  const auto flat = [](auto values) {
    const std::size_t size = values.size();
    return array_of(std::move(values), {size});
  };
  nb::dict out;
  const std::size_t count = cell_images.size();
  out["images"] = flat(std::move(cell_images));
  out["cells"] = array_of(std::move(cells), {count, 6});
  out["dt_ids"] = flat(std::move(dt_ids));
  out["gt_ids"] = flat(std::move(gt_ids));
  out["scores"] = flat(std::move(all.scores));
  out["overlaps"] = flat(std::move(all.overlaps));
  out["dt_matches"] = flat(std::move(dt_matches));
  out["gt_matches"] = flat(std::move(gt_matches));
  out["dt_ignore"] = flat(std::move(all.detection_ignored));
  out["gt_ignore"] = flat(std::move(all.object_ignored));
  return out;
}

// ---- One cell, for subclasses that override how overlaps are computed ---------------------------

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Matches the detections of a cell (in order of descending score) with its objects (ignored
/// objects last) by pycocotools' rule. Returns the ids of the objects matched to the detections
/// [T, D] and of the detections matched to the objects [T, G], 0 = no match, and whether each
/// detection is ignored [T, D].
nb::tuple match_cell(const Numbers& overlaps, const Numbers& thresholds, const Numbers& dt_ids,
                     const Numbers& gt_ids, const Flags& ignored, const Flags& crowd) {
  const std::size_t t_count = thresholds.size(), d_count = dt_ids.size(), g_count = gt_ids.size();
  if (overlaps.size() != d_count * g_count)
    throw nb::value_error(
        fmt::format("ious: expected {} x {} values, found {}", d_count, g_count, overlaps.size())
            .c_str());
  if (ignored.size() != g_count || crowd.size() != g_count)
    throw nb::value_error("expected one flag per object");
  std::vector<double> dt_matches(t_count * d_count, 0), gt_matches(t_count * g_count, 0);
  std::vector<std::uint8_t> dt_ignored(t_count * d_count, 0);
  for (std::size_t t = 0; t < t_count; ++t) {
    double* taken = gt_matches.data() + t * g_count;
    for (std::size_t d = 0; d < d_count; ++d) {
      double least = std::min(thresholds.data()[t], 1 - 1e-10);
      std::size_t best = g_count;
      for (std::size_t g = 0; g < g_count; ++g) {
        if (taken[g] > 0 && !crowd.data()[g]) continue;
        if (best < g_count && !ignored.data()[best] && ignored.data()[g]) break;
        const double overlap = overlaps.data()[d * g_count + g];
        if (overlap < least) continue;
        least = overlap;
        best = g;
      }
      if (best == g_count) continue;
      dt_ignored[t * d_count + d] = ignored.data()[best];
      dt_matches[t * d_count + d] = gt_ids.data()[best];
      taken[best] = dt_ids.data()[d];
    }
  }
  return nb::make_tuple(array_of(std::move(dt_matches), {t_count, d_count}),
                        array_of(std::move(gt_matches), {t_count, g_count}),
                        array_of(std::move(dt_ignored), {t_count, d_count}));
}

// ---- Image by image -----------------------------------------------------------------------------

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

/// An evaluator with its data set.
struct ImageEvaluator {
  ImageEvaluator(std::shared_ptr<const coco::Dataset> set, EvaluateOptions options)
      : truth(std::move(set)), core(truth, std::move(options)) {}

  std::shared_ptr<const coco::Dataset> truth;
  coco::Evaluator core;
};

void add(ImageEvaluator& evaluator, std::int64_t image_id, const AnyArray& boxes,
         const AnyArray& scores, const AnyArray& labels, const nb::object& masks, bool corners) {
  const std::string of = fmt::format("image {}: ", image_id);
  const std::vector<double> score = numbers_of(scores, of + "scores", 1);
  const std::size_t count = score.size();
  const auto expect = [&](const char* name, std::size_t size) {
    if (size != count)
      throw nb::value_error(
          fmt::format("{}{} has {} entries, scores has {}", of, name, size, count).c_str());
  };
  const bool has_boxes = boxes.is_valid() && !(boxes.ndim() == 1 && boxes.shape(0) == 0 && count);
  const std::vector<double> box =
      has_boxes ? numbers_of(boxes, of + "boxes", 2, 4) : std::vector<double>();
  if (has_boxes) expect("boxes", box.size() / 4);
  const std::vector<std::int64_t> label = integers_of(labels, of + "labels");
  expect("labels", label.size());
  for (std::size_t i = 0; i < count; ++i)
    if (std::isnan(score[i]))
      throw nb::value_error(fmt::format("{}scores[{}] is NaN", of, i).c_str());
  for (std::size_t i = 0; i < box.size(); ++i)
    if (!std::isfinite(box[i]))
      throw nb::value_error(
          fmt::format("{}boxes[{}, {}] is not a finite number", of, i / 4, i % 4).c_str());

  std::vector<RleText> texts;
  AnyArray bitmaps;
  if (!masks.is_none() && !nb::try_cast<AnyArray>(masks, bitmaps)) {
    texts = rle_texts(masks, "masks");
    expect("masks", texts.size());
  }
  if (bitmaps.is_valid()) {
    const bool bytes =
        bitmaps.dtype() == nb::dtype<std::uint8_t>() || bitmaps.dtype() == nb::dtype<bool>();
    if (!bytes || bitmaps.ndim() != 3)
      throw nb::value_error((of + "masks: expected an array (D, H, W) of bool or uint8").c_str());
    expect("masks", bitmaps.shape(0));
  }

  const nb::gil_scoped_release free;
  const coco::Dataset& truth = *evaluator.truth;
  std::vector<coco::Detection> found(count);
  for (std::size_t i = 0; i < count; ++i) {
    coco::Detection& one = found[i];
    one.image_id = image_id;
    one.category_id = label[i];
    one.score = score[i];
    if (has_boxes) {
      const double* b = box.data() + 4 * i;
      one.bbox = corners ? coco::Xywh{b[0], b[1], b[2] - b[0], b[3] - b[1]}
                         : coco::Xywh{b[0], b[1], b[2], b[3]};
    }
    try {
      if (!texts.empty()) one.mask = texts[i].decoded();
      if (bitmaps.is_valid())
        one.mask = mask_of_bitmap(static_cast<const std::uint8_t*>(bitmaps.data()) +
                                      static_cast<std::int64_t>(i) * bitmaps.stride(0),
                                  static_cast<std::uint32_t>(bitmaps.shape(1)),
                                  static_cast<std::uint32_t>(bitmaps.shape(2)), bitmaps.stride(1),
                                  bitmaps.stride(2));
    } catch (const Error& problem) {
      throw Error(fmt::format("{}masks[{}]: {}", of, i, problem.what()));
    }
  }
  if (const coco::Image* image = truth.find_image(image_id))
    for (std::size_t i = 0; i < count; ++i)
      if (!found[i].mask.counts.empty())
        expect_fit(truth, *image, found[i].mask.height, found[i].mask.width,
                   fmt::format("{}masks[{}]", of, i));
  evaluator.core.add(image_id, found);
}

}  // namespace

void bind_evaluation(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<EvaluateOptions>(module, "Options", "The parameters of an evaluation.")
      .def("__init__", &init_options, "iou_type"_a, "iou_thrs"_a, "rec_thrs"_a, "areas"_a,
           "area_names"_a, "max_dets"_a, "use_cats"_a, "cat_ids"_a,
           "sigmas"_a = std::vector<double>(), "federated"_a = false,
           "areas: low, high of each range in turn.");
  nb::class_<Run>(module, "Run", "Detections and the data set to evaluate them against.")
      .def(
          "__init__",
          [](Run* self, const Truth& truth, std::shared_ptr<const Found> found,
             EvaluateOptions options, const Ids& image_ids) {
            options.area = found->area;
            new (self) Run{truth.set, std::move(found), std::move(options), list_of(image_ids)};
          },
          "truth"_a, "found"_a, "options"_a, "image_ids"_a)
      .def("evaluate", &evaluate,
           "precision (T, R, K, A, M), recall (T, K, A, M), scores, stats etc.")
      .def("details", &details, "image_ids"_a, "Matches of detections and objects as flat arrays.");
  module.def("match_cell", &match_cell, "overlaps"_a, "thresholds"_a, "dt_ids"_a, "gt_ids"_a,
             "ignored"_a, "crowd"_a,
             "Matches (T, D) and (T, G), and ignored flags (T, D), of a cell.");
  nb::class_<ImageEvaluator>(module, "Evaluator",
                             "Evaluates detections that are added image by image.")
      .def(
          "__init__",
          [](ImageEvaluator* self, const Truth& truth, EvaluateOptions options) {
            if (options.iou == coco::IouType::mask) options.area = coco::AreaFrom::mask;
            new (self) ImageEvaluator(truth.set, std::move(options));
          },
          "truth"_a, "options"_a)
      .def("add", &add, "image_id"_a, "boxes"_a.none(), "scores"_a, "labels"_a, "masks"_a.none(),
           "corners"_a)
      .def("__len__", [](const ImageEvaluator& self) { return self.core.images(); })
      .def("partial",
           [](const ImageEvaluator& self) {
             std::string bytes;
             {
               const nb::gil_scoped_release free;
               bytes = self.core.partial();
             }
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def(
          "merge",
          [](ImageEvaluator& self, const nb::bytes& partial) {
            const std::string_view bytes(partial.c_str(), partial.size());
            const nb::gil_scoped_release free;
            self.core.merge(bytes);
          },
          "partial"_a)
      .def(
          "result",
          [](const ImageEvaluator& self, bool all_images) {
            Evaluation result;
            {
              const nb::gil_scoped_release free;
              using Scope = coco::Evaluator::Scope;
              result = self.core.result(all_images ? Scope::all : Scope::added);
            }
            return tables(std::move(result));
          },
          "all_images"_a);
}

}  // namespace millrace::python
