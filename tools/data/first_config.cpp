#include "millrace/tools/data/first_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "millrace/base/text.h"
#include "millrace/base/word_wrap.h"
#include "millrace/tools/data/base_parts.h"

namespace millrace::advice {
namespace {

std::string list_of(const auto& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

/// Returns the number of detections that an image needs, in hundreds.
std::string enough_detections(const Draft& draft) {
  return fmt::format("{}", (draft.max_objects * 5 / 4 + 99) / 100 * 100);
}

bool is_small_two_stage(const Draft& draft) {
  return !draft.machine.gpu && !draft.network.is_given && draft.type != "retinanet";
}

/// Collects the choices and their dependencies.
class Choices {
 public:
  explicit Choices(const Draft& draft) : draft_(draft) {}

  std::vector<Choice> make() {
    if (draft_.machine.gpu) add("plugins", "[\"millrace_cuda.so\"]", "GPU operators");
    add_data();
    add("model.type", toml_text(draft_.type),
        fmt::format("{}, {}, {}", draft_.type, draft_.network.what,
                    counted(draft_.classes.size(), "class", "classes")),
        "model");
    all_.insert(all_.end(), draft_.network.choices.begin(), draft_.network.choices.end());
    if (!draft_.network.is_given) add_model();
    if (draft_.max_objects > 80)
      add("model.test.detections_per_img", enough_detections(draft_),
          fmt::format("up to {} objects are annotated in an image", draft_.max_objects));
    add_training();
    return std::move(all_);
  }

 private:
  void add(std::string key, std::string value, std::string why, std::string topic = "") {
    all_.push_back({std::move(key), std::move(value), std::move(why), std::move(topic)});
  }

  void add_split(const std::string& key, const SplitText& split) {
    add(key, toml_text(split.name),
        fmt::format("{}, {}{}{}", counted(split.images, "image"), counted(split.objects, "object"),
                    split.about.empty() ? "" : ": ", split.about));
  }

  void add_data() {
    constexpr std::size_t kMostNames = 24;  // maximum number of classes to list
    add("data.root", toml_text(draft_.root), draft_.about_root + "; relative to this file");
    add_split("data.train", draft_.train);
    add_split("data.val", draft_.val);
    std::vector<std::string> names, texts, counts;
    for (const auto& [name, objects] : draft_.classes) {
      names.push_back(name);
      texts.push_back(toml_text(name));
      counts.push_back(fmt::format("{}", objects));
    }
    if (names.size() <= kMostNames)
      add("data.classes", '[' + joined(texts) + ']',
          fmt::format("classes to detect; training objects: {}", joined(counts)));
    const auto batch = fmt::format("{}", draft_.batch);
    add("data.batch_size", batch, "images per step");
    add("data.test_batch_size", batch, "images per batch in evaluation");
    const auto& sides = draft_.sides;
    add("data.short_side", list_of(sides.short_side),
        fmt::format(
            "short side {} of {} pixels: a quarter of the objects is smaller than {:.0f} pixels{}",
            sides.largest(), sides.own_side, sides.small_object,
            sides.too_small ? ", which is hard to learn: use larger images on a larger machine, or "
                              "cut the images into tiles"
                            : ""),
        "sizes");
    add("data.max_side", fmt::format("{}", sides.max_side),
        "limit of the longer side; the short side is chosen at random from data.short_side");
    if (const auto against = no_flip_reason(names); !against.empty())
      add("data.flip", "0.0", "not mirrored: " + against);
  }

  void add_model() {
    const auto& anchors = draft_.anchors;
    const bool chosen = draft_.network.start != Start::detector;
    const auto missed = [](const CoverageSummary& of) {
      return percent_text(1 - of.all.recall(0));
    };
    add("model.anchors.sizes", list_of(anchors.sizes),
        chosen
            ? fmt::format("smallest {} pixels: {} of the objects have no anchor with IoU 0.5 "
                          "(published anchors: {})",
                          anchors.sizes.front(), missed(anchors.chosen), missed(anchors.published))
            : "as in the detector's training",
        chosen ? "anchors" : "");
    if (anchors.ratios.size() > 3)
      add("model.anchors.aspect_ratios", list_of(anchors.ratios),
          "height / width; some objects are elongated");
    if (draft_.type == "retinanet") {
      add("model.anchors.scales_per_octave", "3", "sizes per level, as published");
      if (draft_.network.start == Start::random)
        add("model.head.norm", toml_text("gn"), "same as the backbone");
    } else if (anchors.canonical() != 224) {
      add("model.roi.canonical_box_size", fmt::format("{}", anchors.canonical()),
          "7 times the smallest anchor");
    }
  }

  void add_training() {
    const auto& plan = draft_.plan;
    add("train.epochs", fmt::format("{}", plan.epochs),
        fmt::format("{}, {} of {}", counted(plan.epochs, "epoch"), counted(plan.steps, "step"),
                    counted(draft_.batch, "image")),
        "schedule");
    add("train.output", toml_text(draft_.output),
        "folder for runs, relative to the current folder");
    if (draft_.machine.gpu) {
      add("train.device", toml_text("cuda"), "one GPU per process");
      add("train.precision", toml_text("bf16"), "precision of convolutions; weights stay fp32");
    }
    add("optimizer.lr", fmt::format("{:.4g}", plan.lr),
        fmt::format("learning rate for steps of {} images; scaled to other batch sizes", kLrBatch));
    add("schedule.warmup", toml_text(counted(plan.warmup, "step")),
        "steps until the learning rate reaches optimizer.lr");
    const auto every = toml_text(counted(plan.evaluate_every, "epoch"));
    add("callbacks.evaluate.every", every, fmt::format("evaluation on '{}'", draft_.val.name));
    if (!draft_.limited.empty())
      add("callbacks.evaluate.max_detections", enough_detections(draft_),
          fmt::format("on '{}', {} with COCO's limit; callbacks.evaluate.max_detections is set to "
                      "count all",
                      draft_.val.name, draft_.limited),
          "limit");
    add("callbacks.pictures.every", every, "pictures of detections beside annotations");
    add("callbacks.checkpoint.every", every, "checkpoints for --resume");
    if (draft_.type == "maskrcnn")
      add("callbacks.keep_best.metric", toml_text("segm/AP"),
          "metric of the best checkpoint, which is kept");
  }

  const Draft& draft_;
  std::vector<Choice> all_;
};

}  // namespace

std::vector<Choice> choices(const Draft& draft) { return Choices(draft).make(); }

std::string base_text(const Draft& draft) {
  std::string text = kCommonPart;
  if (is_small_two_stage(draft)) {
    text += kProposalsPart;
    if (draft.network.start != Start::detector) text += kHeadsPart;
    if (draft.network.start != Start::detector && draft.type == "maskrcnn") text += kMasksPart;
  }
  if (draft.network.start == Start::random) text += kScratchPart;
  return text;
}

std::string config_text(const Draft& draft) {
  constexpr std::size_t kColumns = 100;
  const auto base = parse_config(base_text(draft), "base.toml");
  std::vector<std::pair<std::string, std::string>> tables;  // names and lines
  for (const auto& [path, value, why, topic] : choices(draft)) {
    if (const auto* same = base.find_path(path); same && value_text(*same) == value) continue;
    const auto dot = path.rfind('.');
    const auto name = dot == path.npos ? "" : path.substr(0, dot);
    auto table = std::ranges::find(tables, name, [](const auto& one) { return one.first; });
    if (table == tables.end()) table = tables.insert(table, {name, ""});
    table->second += fmt::format("{}\n{} = {}\n", wrapped("# " + why, kColumns, "# "),
                                 path.substr(dot + 1), value);
  }
  auto text =
      wrapped(fmt::format("# {} on {}, written by `{}`. `trainer run {}` trains it, `trainer "
                          "config {}` prints all keys, `trainer list` explains them.",
                          draft.network.what, counted(draft.train.images, "image"), draft.command,
                          draft.file, draft.file),
              kColumns, "# ") +
      "\nbase = \"base.toml\"\n";
  for (const auto& [name, lines] : tables)
    text += (name.empty() ? "" : fmt::format("\n[{}]\n", name)) + lines;
  return text;
}

Config first_config(const Draft& draft) {
  auto tree = parse_config(base_text(draft), "base.toml");
  merge(tree, without(parse_config(config_text(draft), draft.file), {"base"}));
  return tree;
}

}  // namespace millrace::advice
