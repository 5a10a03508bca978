// trainer init: writes a first configuration for a folder of photos and labels.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/init/choices.h"
#include "millrace/cli/init/data_folder.h"
#include "millrace/cli/init/machine.h"
#include "millrace/cli/init/source_data.h"
#include "millrace/tools/data/first_config.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 1;  // for dividing the data and for train.seed

struct InitArguments {
  fs::path out, data;
  std::string format, model, weights;
  bool json = false;
};

/// Returns a relative path as seen from `folder`; absolute paths unchanged.
std::string seen_from(const fs::path& folder, const fs::path& path) {
  if (path.is_absolute()) return path.string();
  const auto whole = [](const fs::path& one) { return fs::absolute(one).lexically_normal(); };
  return whole(path).lexically_relative(whole(folder)).string();
}

/// Makes a first configuration and its data.
class Init {
 public:
  explicit Init(const InitArguments& arguments)
      : arguments_(arguments),
        report_(arguments.json),
        machine_(this_machine()),
        data_(read_source(arguments.data, arguments.format)) {
    const auto file = arguments.weights.empty() ? find_weights(machine_) : arguments.weights;
    if (!file.empty()) weights_ = weight_facts(file);
  }

  /// Does all steps and returns the JSON of the report.
  Json run() {
    look_at_data();
    say_network();
    make_choices();
    write();
    fit_batch();
    measure();
    say_next();
    return std::move(report_.json);
  }

 private:
  void look_at_data() {
    draft_.type = arguments_.model.empty() ? choose_type(data_, weights_) : arguments_.model;
    report_.examine(arguments_.data, data_, /*masks=*/draft_.type == "maskrcnn");
    if (data_.val)
      report_.add("split", "as in the folder: " + split_sizes() + leak_text());
    else
      say_division(divide(data_, kSeed));
  }

  std::string split_sizes() const {
    return fmt::format("{} for training, {} for validation",
                       counted(data_.train.data->images.size(), "image"),
                       data_.val->data->images.size());
  }

  std::string leak_text() {
    const auto compared = leaks(data_);
    if (!compared) return "";
    const auto& found = *compared;
    report_.json["leaks"] = found;
    if (found.empty()) return "; no validation image is a near-copy of a training image";
    return fmt::format(
        "; {} for validation {} for training ({}): scores will be too high; remove one of each",
        counted(found.size(), "image"),
        found.size() == 1 ? "is a near-copy of one" : "are near-copies of some",
        found.front() + (found.size() > 1 ? ", ..." : ""));
  }

  void say_division(const Division& division) {
    if (division.same) {
      data_.val->name = data_.train.name = "train";
      report_.add("split",
                  "too few images to split; validation uses the training images, which shows "
                  "whether the model can learn them, not how well it does on others");
      return;
    }
    auto text = split_sizes();
    if (division.copies > 0)
      text += fmt::format("; {} in the same split as the original",
                          counted(division.copies, "near-copy"));
    if (division.scenes > 0)
      text += fmt::format("; {} in the same split as the rest of the scene",
                          counted(division.scenes, "frame"));
    if (division.cut > 0)
      text += fmt::format(
          "; {} images are similar, as frames of one video are, and were split in the order of "
          "their names: scores show little about other places",
          division.cut);
    report_.add("split", text);
    report_.json["classes_not_evaluated"] = division.unvalidated;
    if (!division.unvalidated.empty())
      report_.print("note: the validation split has no object of " + some(division.unvalidated));
  }

  static std::string some(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 8;
    const auto shown = std::min(names.size(), kMost);
    return joined(std::span(names).first(shown)) +
           (names.size() > shown ? fmt::format(" and {} more classes", names.size() - shown) : "");
  }

  void say_network() {
    if (weights_) {
      draft_.network = advice::network_from(*weights_, machine_);
      report_.add("weights",
                  fmt::format("{}{}: {}", weights_->file,
                              arguments_.weights.empty() ? " (found)" : "", draft_.network.what));
    } else {
      draft_.network = advice::network_from_nothing(machine_);
      report_.add("weights",
                  "none given or found; training starts from random values, which needs many "
                  "images and much time; base.toml names weights to download and their folder");
    }
  }

  void make_choices() {
    draft_.command = command();
    draft_.file = (arguments_.out / "config.toml").string();
    draft_.root = data_.is_ready ? seen_from(arguments_.out, arguments_.data) : "data";
    draft_.output = (arguments_.out / "runs").string();
    draft_.about_root = data_.is_ready ? "in COCO's layout, used unchanged"
                                       : "the images are links to " + arguments_.data.string();
    draft_.machine = machine_;
    choose(draft_, data_);
    say_choices();
  }

  std::string command() const {
    auto text =
        fmt::format("trainer init {} --data {}", arguments_.out.string(), arguments_.data.string());
    if (!arguments_.format.empty()) text += " --format " + arguments_.format;
    if (!arguments_.model.empty()) text += " --model " + arguments_.model;
    if (!arguments_.weights.empty()) text += " --weights " + arguments_.weights;
    return text;
  }

  /// Reports the choices on one topic; empty = all topics.
  void say_choices(std::string_view topic = "") {
    for (const auto& choice : advice::choices(draft_))
      if (!choice.topic.empty() && (topic.empty() || topic == choice.topic))
        report_.add(choice.topic, choice.why);
  }

  void write() {
    if (const auto copies = write_folder(arguments_.out, data_, draft_); copies > 0)
      report_.add("copied", fmt::format("{}, because this file system does not support links",
                                        counted(copies, "image")));
    report_.add("wrote", data_.is_ready ? fmt::format("{}, which reads {} unchanged", draft_.file,
                                                      root().string())
                                        : fmt::format("{} and {}", draft_.file, root().string()));
    report_.json["config"] = draft_.file;
  }

  /// Returns the result of `measured` for the configuration as written, with warnings suppressed.
  auto quietly(const auto& measured) const {
    const auto whole = ConfigArguments{{.file = draft_.file, .overrides = {}}}.load();
    const auto level = spdlog::get_level();
    spdlog::set_level(spdlog::level::err);  // the training itself will warn
    auto result = measured(whole);
    spdlog::set_level(level);
    return result;
  }

  /// Lowers the batch size to what fits into memory, estimated from a step with one image.
  void fit_batch() {
    if (machine_.gpu || draft_.batch == 1) return;
    const double bytes = quietly(measure_image);
    const auto batch = advice::batch_in_memory(draft_.batch, machine_, bytes);
    if (batch == draft_.batch) return;
    set_batch(draft_, batch);
    write_file_atomically(draft_.file, config_text(draft_));
    report_.add("memory",
                fmt::format("a step with one image took {}, and {} are available, so a step has {}",
                            byte_text(bytes), byte_text(machine_.memory), counted(batch, "image")));
    say_choices("schedule");
  }

  void measure() {
    const auto time = quietly(measure_steps);
    const auto& plan = draft_.plan;
    const auto images = data_.val->data->images.size();
    const auto whole_s = training_time(plan, time, images);
    report_.add("time",
                fmt::format("{} on this machine: a step took {:.2f} s on {} (median of {}) "
                            "with {} of memory; evaluation takes {} of this time",
                            duration_text(whole_s.all), time.step_s, text_of(machine_), time.steps,
                            byte_text(time.memory), duration_text(whole_s.evaluations)));
    const auto alone_s = time.cpu_s / static_cast<double>(machine_.cores);
    if (!machine_.gpu && time.step_s > 2 * alone_s)
      report_.print(
          fmt::format("note: the machine is busy with other work: a step used {:.2f} s of CPU "
                      "time, so it takes less than half as long on an idle machine",
                      time.cpu_s));
    report_.json["step_s"] = time.step_s;
    report_.json["step_cpu_s"] = time.cpu_s;
    report_.json["training_s"] = whole_s.all;
    report_.add("look first at", advice::first_check_text(plan, draft_.network.start, images));
  }

  void say_next() {
    const auto run = (arguments_.out / "runs" / "config-1").string();
    const std::vector<std::pair<std::string, std::string>> next = {
        {"trainer inspect " + draft_.file, "shows what training will see"},
        {"trainer run " + draft_.file, "trains"},
        {fmt::format("trainer predict {} {} --out {}", run, (root() / data_.val->name).string(),
                     (arguments_.out / "found").string()),
         "then detects objects"}};
    report_.json["next"] = Json::array();
    for (const auto& [command, what] : next) {
      report_.print_line(fmt::format("{:6}{}  # {}\n", report_.json["next"].empty() ? "next:" : "",
                                     command, what));
      report_.json["next"].push_back(command);
    }
  }

  fs::path root() const { return data_.is_ready ? arguments_.data : arguments_.out / "data"; }

  const InitArguments& arguments_;
  InitReport report_;
  const advice::Machine machine_;
  SourceData data_;
  std::optional<advice::WeightFacts> weights_;  // nullopt = random values
  advice::Draft draft_;
};

/// Throws ConfigError if the folder is not empty; removes an empty one.
void check_out(const fs::path& out) {
  std::error_code problem;
  if (!fs::exists(out, problem)) return;
  if (!fs::is_directory(out, problem) || !fs::is_empty(out, problem))
    throw ConfigError(
        fmt::format("'{}' already exists; choose another folder or delete it", out.string()));
  fs::remove(out, problem);
}

/// Returns a path without a separator at its end.
fs::path bare_path(const fs::path& path) {
  return path.has_filename() || !path.has_parent_path() ? path : path.parent_path();
}

int init(const InitArguments& given) {
  auto arguments = given;
  arguments.out = bare_path(given.out);
  arguments.data = bare_path(given.data);
  check_out(arguments.out);
  const auto json = Init(arguments).run();
  if (arguments.json) print(json);
  return kDone;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "init", init);
  command.add_option("DIR", arguments.out, "new folder for config.toml, data and runs")
      ->type_name("")
      ->required();
  add_option(command, "--data", arguments.data, "PATH",
             "folder with images and labels in a format that trainer import reads")
      ->required();
  add_option(
      command, "--format", arguments.format, "NAME",
      "format of PATH, if detection fails or is wrong; trainer import --help lists the formats");
  command
      .add_option("--model", arguments.model,
                  "detector; default: maskrcnn if the objects have shapes, else fasterrcnn")
      ->check(CLI::IsMember({"fasterrcnn", "maskrcnn", "retinanet"}));
  add_option(command, "--weights", arguments.weights, "FILE",
             "initial weights; default: a file in data/weights or weights, if there is one");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer init cats --data photos",
                         "trainer init cats --data photos --weights resnet18-f37072fd.pth",
                         "trainer init cats --data photos --model retinanet --json"});
}

}  // namespace millrace::cli
