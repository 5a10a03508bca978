#include "millrace/tools/data/advice/config_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "millrace/base/config.h"
#include "millrace/base/text.h"
#include "millrace/tools/data/percent_text.h"

namespace millrace::advice {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kMostNames = 24;  // of classes that are listed

/// TOML of a text, whatever is in it.
std::string toml(const std::string& text) { return value_text(Config(text, Origin{})); }

template <class Numbers>
std::string list_of(const Numbers& numbers) {
  std::vector<std::string> words;
  for (const auto number : numbers) words.push_back(fmt::format("{}", number));
  return '[' + joined(words) + ']';
}

std::string count_of(std::size_t count, std::string_view noun) {
  return counted(static_cast<long long>(count), noun);
}

/// Gathers tables; comments of a table stand in one column, those too long for it above their line.
class Text {
 public:
  explicit Text(std::string head) : text_(std::move(head)) {}

  void table(const std::string& name) {
    flush();
    text_ += fmt::format("\n[{}]\n", name);
  }
  void line(const std::string& key, const std::string& value, const std::string& comment) {
    lines_.push_back({key, value, comment});
  }
  void lines(const std::vector<ConfigLine>& all) {
    lines_.insert(lines_.end(), all.begin(), all.end());
  }
  std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  static std::size_t width(const ConfigLine& line) {
    return line.key.size() + line.value.size() + 3;
  }

  void flush() {
    constexpr std::size_t kWidest = 44;  // what comments stand beside
    std::size_t column = 0;
    for (const auto& line : lines_)
      if (width(line) <= kWidest) column = std::max(column, width(line));
    for (const auto& line : lines_) {
      const auto code = fmt::format("{} = {}", line.key, line.value);
      const auto at = std::max(column, code.size());
      if (line.comment.empty())
        text_ += code + '\n';
      else if (at + 4 + line.comment.size() <= kColumns)
        text_ += fmt::format("{:{}}  # {}\n", code, at, line.comment);
      else
        text_ += wrapped(line.comment) + code + '\n';
    }
    lines_.clear();
  }

 public:
  /// As a comment over several lines.
  static std::string wrapped(const std::string& words) {
    std::string result, line = "#";
    for (std::size_t begin = 0; begin < words.size();) {
      const auto end = std::min(words.find(' ', begin), words.size());
      const auto word = words.substr(begin, end - begin);
      if (line.size() + 1 + word.size() > kColumns && line.size() > 1) {
        result += line + '\n';
        line = "#";
      }
      line += ' ' + word;
      begin = end + 1;
    }
    return result + line + '\n';
  }

 private:
  std::string text_;
  std::vector<ConfigLine> lines_;
};

std::string head_of(const Draft& draft) {
  auto text =
      Text::wrapped(fmt::format("{} on {}, written by `{}`. It trains with", draft.network.what,
                                count_of(draft.train.images, "image"), draft.command));
  text += fmt::format("#\n#     trainer run {}\n#\n", draft.file);
  text += Text::wrapped(
      fmt::format("Other keys have their defaults: `trainer config {}` prints all, "
                  "`trainer list` says what they "
                  "mean. data.root is relative to this file, other paths to the current folder.",
                  draft.file));
  if (draft.network.start == Start::random)
    text += "#\n" +
            Text::wrapped(
                "Without weights a detector needs many images and long training. With those of a "
                "network trained on ImageNet it learns from few: fetch resnet18-f37072fd.pth (on a "
                "GPU resnet50-11ad3fa6.pth), torchvision's classifiers, into data/weights and give "
                "the command above once more for another folder.");
  return text;
}

void add_data(const Draft& draft, Text& text) {
  text.table("data");
  text.line("root", toml(draft.root), draft.about_root);
  const auto about = [](const SplitText& split) {
    return fmt::format("{}, {}{}{}", count_of(split.images, "image"),
                       count_of(split.objects, "object"), split.about.empty() ? "" : ": ",
                       split.about);
  };
  text.line("train", toml(draft.train.name), about(draft.train));
  text.line("val", toml(draft.val.name), about(draft.val));
  if (draft.classes.size() <= kMostNames) {
    std::vector<std::string> names, counts;
    for (const auto& [name, objects] : draft.classes) {
      names.push_back(toml(name));
      counts.push_back(fmt::format("{}", objects));
    }
    text.line("classes", '[' + joined(names) + ']',
              draft.classes.size() == 1
                  ? "what is found; others are ignored"
                  : fmt::format("what is found; {} objects to train on", joined(counts)));
  }
  text.line("batch_size", fmt::format("{}", draft.batch), "images a step");
  text.line("test_batch_size", fmt::format("{}", draft.batch), "images at a time in evaluation");
  const auto& sides = draft.sides;
  text.line("short_side", list_of(sides.short_side),
            fmt::format("pixels, one at random; the images have {}", sides.own_side));
  text.line(
      "max_side", fmt::format("{}", sides.max_side),
      fmt::format("pixels; a quarter of the objects is under {:.0f} then", sides.small_object));
  std::vector<std::string> names;
  for (const auto& [name, objects] : draft.classes) names.push_back(name);
  const auto against = reason_against_flips(names);
  text.line("flip", against.empty() ? "0.5" : "0.0",
            against.empty() ? "half of the images are mirrored" : "not mirrored: " + against);
}

/// The tables of a [model] that weights determine.
void add_given(const std::vector<ConfigLine>& given, Text& text) {
  std::map<std::string, std::vector<ConfigLine>> tables;  // "" before the others
  for (const auto& line : given) {
    const auto dot = line.key.rfind('.');
    const bool is_nested = dot != std::string::npos;
    tables[is_nested ? line.key.substr(0, dot) : ""].push_back(
        {is_nested ? line.key.substr(dot + 1) : line.key, line.value, line.comment});
  }
  for (const auto& [name, lines] : tables) {
    if (!name.empty()) text.table("model." + name);
    text.lines(lines);
  }
}

/// How many detections an image needs, in hundreds.
std::size_t enough_detections(const Draft& draft) {
  return (draft.most_objects * 5 / 4 + 99) / 100 * 100;
}

void add_results(const Draft& draft, Text& text) {
  if (draft.most_objects <= 80) return;
  text.table("model.test");
  text.line("detections_per_img", fmt::format("{}", enough_detections(draft)),
            fmt::format("up to {} objects are annotated in an image", draft.most_objects));
}

void add_model(const Draft& draft, Text& text) {
  const bool retinanet = draft.type == "retinanet";
  text.table("model");
  text.line("type", toml(draft.type),
            draft.type == "maskrcnn" ? "boxes and masks: the objects have shapes" : "boxes");
  text.lines(draft.network.model);
  if (draft.network.is_given) {
    add_given(draft.network.given, text);
    add_results(draft, text);
    return;
  }
  text.table("model.backbone");
  text.lines(draft.network.backbone);
  if (!draft.network.pyramid.empty()) {
    text.table("model.fpn");
    text.lines(draft.network.pyramid);
  }
  const auto& anchors = draft.anchors;
  text.table("model.anchors");
  const auto of = [](const CoverageSummary& summary) {
    return percent_text(1 - summary.all.recall(0));
  };
  text.line("sizes", list_of(anchors.sizes),
            fmt::format("pixels; {} of objects overlap none by half (published: {})",
                        of(anchors.chosen), of(anchors.published)));
  if (anchors.ratios.size() > 3)
    text.line("aspect_ratios", list_of(anchors.ratios), "height / width: some objects are long");
  if (retinanet) text.line("scales_per_octave", "3", "sizes a level, as published");
  const bool small = !draft.machine.gpu;
  if (!retinanet) {
    if (small) {
      text.table("model.rpn");
      text.line("pre_nms_top_n_train", "1000", "proposals a level; fewer than published: faster");
      text.line("pre_nms_top_n_test", "500", "the same in evaluation");
      text.line("post_nms_top_n_train", "300", "proposals an image");
      text.line("post_nms_top_n_test", "200", "the same in evaluation");
    }
    text.table("model.roi");
    if (anchors.canonical() != 224)
      text.line("canonical_box_size", fmt::format("{}", anchors.canonical()),
                "pixels; follows the anchors: 7 times the smallest");
    if (small) text.line("sampling_ratio", "2", "samples a cell and axis");
    text.line("batch_size_per_image", small ? "128" : "512",
              "regions an image that are trained on");
    if (draft.network.start != Start::detector && small) {
      text.table("model.box");
      text.line("fc_dim", "512", "values of the box head's layers; 1024 is published");
      if (draft.type == "maskrcnn") {
        text.table("model.mask");
        text.line("conv_dim", "128", "channels of the mask head; 256 is published");
        text.line("num_convs", "2", "its convolutions; 4 are published");
        text.line("init_std", "0",
                  "He's; the published 0.001 takes thousands of steps to get going");
      }
    }
  } else if (draft.network.start == Start::random) {
    text.table("model.head");
    text.line("norm", toml("gn"), "as the backbone");
  }
  add_results(draft, text);
}

void add_training(const Draft& draft, Text& text) {
  const auto& plan = draft.plan;
  text.table("train");
  text.line("epochs", fmt::format("{}", plan.epochs),
            fmt::format("{} steps in all; few images are seen often", plan.steps));
  text.line("seed", "1", "of weights, order and every draw: the same seed gives the same model");
  text.line("output", toml(draft.output), "run folders are made in it");
  if (draft.machine.gpu) {
    text.line("device", toml("cuda"), "the GPU");
    text.line("precision", toml("bf16"), "of convolutions; weights stay fp32");
  }
  text.table("optimizer");
  text.line("lr", fmt::format("{:.4g}", plan.lr),
            fmt::format("for steps of {} images; scaled to other batches", kLrBatch));
  text.line("lr_batch", fmt::format("{}", kLrBatch), "see lr");
  text.line("clip_norm", "10", "bounds the first steps of heads that start from random values");
  text.table("schedule");
  text.line("type", toml("cosine"), "the rate falls to 0 along a cosine");
  text.line("warmup", toml(counted(plan.warmup, "step")), "it rises to lr before that");
  const auto every = counted(plan.evaluate_every, "epoch");
  text.table("callbacks.log");
  text.line("every", toml("20 steps"), "a line with the losses");
  text.table("callbacks.evaluate");
  text.line("every", toml(every), fmt::format("scores on '{}'", draft.val.name));
  if (!draft.limited.empty())
    text.line("max_detections", fmt::format("{}", enough_detections(draft)),
              "counted by AP; with COCO's 100, " + draft.limited);
  text.table("callbacks.pictures");
  text.line("every", toml(every), "detections beside annotations, as pictures");
  text.table("callbacks.checkpoint");
  text.line("every", toml(every), "what --resume goes on from");
  text.table("callbacks.keep_best");
  text.line("metric", toml(draft.type == "maskrcnn" ? "segm/AP" : "bbox/AP"),
            "the checkpoint with the best score stays");
}

}  // namespace

std::string config_text(const Draft& draft) {
  Text text(head_of(draft));
  if (draft.machine.gpu) text.line("plugins", "[\"millrace_cuda.so\"]", "the GPU's operators");
  add_data(draft, text);
  add_model(draft, text);
  add_training(draft, text);
  return text.take();
}

}  // namespace millrace::advice
