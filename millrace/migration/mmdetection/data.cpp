#include <fmt/format.h>

#include <string>

#include "millrace/migration/mmdetection/parts.h"
#include "millrace/migration/mmdetection/pipeline.h"
#include "millrace/migration/mmdetection/readers.h"
#include "millrace/migration/translation/data_tables.h"

namespace millrace::mmdetection {
namespace {

/// ROOT/annotations/instances_SPLIT.json with ROOT/SPLIT/ is our layout, too. Returns SPLIT; "": it
/// is in another layout.
std::string put_split(Translation& t, const std::string& path, const std::string& role) {
  const auto type = t.read(path + ".type");
  if (type && type.text() != "CocoDataset")
    t.leave_out(type, "data are read in COCO's layout: docs/migrating/mmdetection.md");
  const auto root = t.read(path + ".data_root");
  const auto file = t.read(path + ".ann_file");
  const auto images =
      t.read_any({path + ".data_prefix.img", path + ".data_prefix.img_path", path + ".img_prefix"});
  if (!file) return "";
  const auto under = [&](const Found& part) {
    auto text = part ? part.text() : std::string();
    if (root && !text.starts_with('/')) {
      const auto base = root.text();
      if (!text.starts_with(base)) text = base + (base.ends_with('/') ? "" : "/") + text;
    }
    while (text.ends_with('/')) text.pop_back();
    return text;
  };
  const auto json = under(file), folder = under(images);
  const std::string middle = "/annotations/instances_", end = ".json";
  const auto at = json.rfind(middle);
  if (at != std::string::npos && json.ends_with(end)) {
    const auto split =
        json.substr(at + middle.size(), json.size() - end.size() - at - middle.size());
    const auto base = json.substr(0, at);
    const auto* other = t.ours().find_path("data.root");
    if (folder == base + "/" + split &&
        (role == "train" || (other && std::get<std::string>(other->data) == base))) {
      if (role == "train") t.put("data.root", words(base), file);
      t.put("data." + role, words(split), file);
      return split;
    }
  }
  t.leave_out(file,
              "data.root has annotations/instances_SPLIT.json and SPLIT/: move or link the "
              "files there");
  return "";
}

void read_loaders(Translation& t, const Layout& layout, const std::string& inner) {
  const auto test = t.read_any({"val_dataloader.batch_size"});
  if (test) t.put("data.test_batch_size", test.real(), test);
  if (const auto one = t.read("test_dataloader.batch_size");
      one && !(test && same(*one.value, *test.value)))
    t.leave_out(one, "eval and predict take data.test_batch_size");
  const auto sampler = t.read("train_dataloader.batch_sampler.type");
  if (layout.is_new) {
    const bool groups = sampler && sampler.text() == "AspectRatioBatchSampler";
    if (sampler)
      t.put("data.aspect_grouping", Config::Data(groups), sampler);
    else
      t.set("data.aspect_grouping", Config::Data(false), "no AspectRatioBatchSampler");
  }
  const auto order = t.read("train_dataloader.sampler.type");
  if (order && order.text() != "DefaultSampler" && order.text() != "InfiniteSampler")
    t.leave_out(order, "images come in a random order; [[data.sources]] weigh them");
  for (const auto* loader : {"train_dataloader", "val_dataloader", "test_dataloader", "data"})
    for (const auto* key : {"num_workers", "persistent_workers", "workers_per_gpu", "drop_last",
                            "sampler", "pin_memory", "collate_fn"})
      t.read(fmt::format("{}.{}", loader, key));
  for (const auto* key : {"backend_args", "file_client_args", "metainfo", "proposal_file"})
    t.read(inner + "." + key);
}

/// Detection here has one split and one set of sizes.
void expect_same_test(Translation& t, const Layout& layout) {
  for (const auto* key : {"test_mode", "backend_args", "metainfo", "classes"})
    t.read(layout.val_set + "." + key);
  t.leave_out_rest(layout.val_set, "without a counterpart in evaluation");
  const auto one = t.read(layout.test_set), other = t.look(layout.val_set);
  if (one && other && !same(*one.value, *other.value))
    t.leave_out(one,
                "eval and predict take the validation split's sizes; another split is "
                "--set data.val=...");
  for (const auto* key : {"val_dataloader", "test_dataloader", "train_dataloader", "data"})
    t.leave_out_rest(key, "without a counterpart in [data]");
  for (const auto* key : {"val_evaluator", "test_evaluator"}) {
    for (const auto* part : {"type", "ann_file", "metric", "format_only", "backend_args"})
      t.read(fmt::format("{}.{}", key, part));
    t.leave_out_rest(key, "COCO's figures of boxes, and of masks where there are some");
  }
}

}  // namespace

std::string TrainingData::repeated() const {
  return times == 1 ? "" : fmt::format("x {}, as RepeatDataset says", times);
}

TrainingData read_data(Translation& t, const Layout& layout) {
  TrainingData data;
  auto inner = layout.train_set;
  for (int depth = 0; depth < 5 && t.look(inner + ".dataset"); ++depth) {
    const auto wrapper = text_or(t, inner + ".type", "");
    if (wrapper == "RepeatDataset") {
      data.times *= real_or(t, inner + ".times", 1);
    } else if (wrapper == "ClassBalancedDataset") {
      if (const auto threshold = t.read(inner + ".oversample_thr"))
        put_repeat_factor(t, threshold, threshold);
    } else {
      t.leave_out(t.look(inner + ".type"), "a wrapper of data sets without a counterpart");
      t.leave_out_rest(inner + ".pipeline", "a wrapper's own pipeline");
    }
    inner += ".dataset";
  }
  data.split = put_split(t, inner, "train");
  put_split(t, layout.val_set, "val");
  const auto filter =
      t.read_any({inner + ".filter_cfg.filter_empty_gt", inner + ".filter_empty_gt"});
  if (filter) t.put("data.filter_empty", Config::Data(filter.flag()), filter);
  if (const auto least = t.read(inner + ".filter_cfg.min_size"))
    t.leave_out(least, "a stage filter with min_side leaves small images out (COCO has none)");
  const auto classes =
      t.read_any({inner + ".metainfo.classes", inner + ".metainfo.CLASSES", inner + ".classes"});
  if (classes) {
    Config::Array names;
    if (!classes.need().is_list()) classes.fail("a list of names is needed");
    for (const auto& one : classes.need().list())
      names.push_back({words(Found{&one, classes.path, one.place}.text()), {}});
    t.put("data.classes", Config::Data(std::move(names)), classes);
  }
  const auto pixels = read_pipelines(t, inner + ".pipeline", layout.val_set + ".pipeline");
  if (!pixels.empty()) read_pixels(t, pixels, "to_rgb");
  if (const auto batch = t.read_any(
          {"train_dataloader.batch_size", "data.samples_per_gpu", "data.imgs_per_gpu"})) {
    t.put("data.batch_size", batch.real(), batch);
    data.images_per_gpu = batch.real();
  }
  read_loaders(t, layout, inner);
  expect_same_test(t, layout);
  return data;
}

}  // namespace millrace::mmdetection
