// Help text of the command line, and messages for wrong usage.
#include <map>
#include <set>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using Usage = Trainer;

// The evaluator needs neither. Readers for image formats other than JPEG are loaded when the first
// such image is read.
TEST_F(Usage, LoadsNeitherOpenCvNorTorch) {
  const auto loaded = successful(run("/usr/bin/ldd", {MILLRACE_TRAINER})).out;
  for (const auto* library : {"imgcodecs", "gdal", "tiff", "webp", "torch"})
    EXPECT_THAT(loaded, Not(HasSubstr(library)));
  const auto with_torch =
      successful(run("/usr/bin/ldd", {std::string(MILLRACE_TRAINER) + "-torch"})).out;
  for (const auto* library : {"imgcodecs", "gdal", "tiff", "webp"})
    EXPECT_THAT(with_torch, Not(HasSubstr(library)));
}

TEST_F(Usage, ShowsExampleForEveryCommand) {
  const auto all = successful(trainer({"--help"}));
  for (const std::string command :
       {"run",           "eval",       "coco-eval", "predict", "sample", "pack",
        "convert",       "export",     "config",    "list",    "bench",  "doctor",
        "serve",         "check-gpu",  "report",    "init",    "import", "inspect",
        "import-config", "completion", "man",       "index",   "study"}) {
    EXPECT_THAT(all.out, HasSubstr("\n  " + command + " "));
    EXPECT_THAT(successful(trainer({command, "--help"})).out,
                HasSubstr("Examples:\n  trainer " + command));
  }
  EXPECT_THAT(successful(trainer({"--version"})).out,
              AllOf(StartsWith("trainer "), HasSubstr("\nlibtorch "), HasSubstr(" in /"),
                    HasSubstr("\nrevision "), HasSubstr("\nbuilt by "), HasSubstr("\nprocessor ")));
}

TEST_F(Usage, FitsHelpIntoEightyColumns) {
  for (const std::string command :
       {"", "run", "eval", "coco-eval", "predict", "import", "convert", "export", "bench",
        "check-gpu", "init", "import-config", "study"}) {
    std::istringstream help(
        successful(trainer(command.empty() ? Words{"--help"} : Words{command, "--help"})).out);
    for (std::string line; std::getline(help, line);) {
      if (line == "Examples:") break;  // examples are for copying and not wrapped
      EXPECT_LE(line.size(), 80) << command << ": " << line;
    }
  }
}

TEST_F(Usage, ListsDefaultCallbacksAsDocumented) {
  std::istringstream page(read_text("docs/callbacks.md"));
  std::set<std::string> marked, listed;
  for (std::string line, bar, name, star; std::getline(page, line);)
    if (std::istringstream(line) >> bar >> name >> star && bar == "|" && star == "*")
      marked.insert(name.substr(1, name.size() - 2));
  const auto list = trainer({"list", "--json"}).json();
  for (const auto& callback : list.at("callbacks"))
    if (callback.at("in_every_run")) listed.insert(callback.at("name"));
  EXPECT_EQ(marked, listed);
}

TEST_F(Usage, SuggestsNewNameOfRenamedOption) {
  for (const Words& words : {Words{"run", "a.toml", "--output", "runs"},
                             Words{"export", "runs/a-1", "--to", "a.onnx"}}) {
    const auto outcome = trainer(words);
    expect_error(outcome, 2, words[words.size() - 2]);
    EXPECT_THAT(outcome.err, HasSubstr("--out\n"));
  }
}

TEST_F(Usage, NamesMissingModel) {
  const auto missing = in_folder("missing").string();
  for (const Words& words :
       {Words{"predict", missing, "photos", "--out", in_folder("found")}, Words{"eval", missing}}) {
    const auto outcome = trainer(words);
    expect_error(outcome, 2, missing);
    EXPECT_THAT(outcome.err, Not(HasSubstr("configuration")));
  }
}

TEST_F(Usage, RunsWithFewFileDescriptors) {
  const auto limited = [&](const Words& words) {
    return run("/bin/sh", {"-c", "ulimit -n 20; exec" + quoted(Words{MILLRACE_TRAINER} + words)});
  };
  const auto data = make_data();
  const auto trained = limited(
      on(data, {"run", "--out", in_folder("runs")}, kTrainOnly + Words{"train.max_steps=1"}));
  successful(trained);
  const auto endpoint = "ipc://" + in_folder("socket").string();
  expect_error(limited(on(data, {"serve", "--bind", endpoint})), 2, "ulimit -n");
}

TEST_F(Usage, NamesWrongUsage) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{}, "subcommand"},
      {{"evla", "x.toml"}, "'eval'"},
      {{"list", "--colour"}, "--colour"},
      {{"eval", "x.toml"}, "x.toml"},
      {{"eval", "configs/maskrcnn.toml"}, "--weights"},
      {{"list", "--quiet", "--verbose"}, "excludes"},
      {{"completion", "tcsh"}, "tcsh"},
      {{"config"}, "--schema"},
      {{"sample", "--out", in_folder("x"), "--train", "0"}, "--train: '0'"},
      {{"bench", "dataflow", "x.toml", "--threads", "-1"}, "--threads: '-1'"},
      {{"doctor", "x.toml", "--max", "-1"}, "--max: '-1'"}};
  for (const auto& [words, part] : cases) expect_error(trainer(words), 2, part);
}

TEST_F(Usage, EvaluatorRunsWithoutTorchProgram) {
  const auto alone = in_folder("trainer");
  fs::copy_file(MILLRACE_TRAINER, alone);
  expect_error(run(alone, {"doctor", "x.toml"}), 1,
               in_folder("trainer-torch").string() + ": No such file");
  expect_error(run(alone, {"coco-eval", "--gt", "no.json", "--dt", "no.json", "--iou", "bbox"}), 1,
               "no.json");
}

TEST_F(Usage, MatchesTorchProgram) {
  const auto alone = in_folder("trainer"), faulty = in_folder("faulty.toml");
  fs::copy_file(MILLRACE_TRAINER, alone);
  write_text(faulty, "[train]\nmax_steps = = 3\n");
  for (const Words& words : {Words{"--help"}, {"-h"}}) {
    const auto expected = successful(run(std::string(MILLRACE_TRAINER) + "-torch", words));
    EXPECT_EQ(successful(run(alone, words)).out, expected.out) << words[0];
  }
  for (const auto* command : {"run", "config", "eval"}) {
    Words words = {command, faulty};
    if (words[0] == "eval") words = words + Words{"--weights", "x.safetensors"};
    const auto expected = run(std::string(MILLRACE_TRAINER) + "-torch", words);
    const auto outcome = run(alone, words);
    expect_error(outcome, 2, faulty.string() + ":2:13: ");
    EXPECT_EQ(outcome.err, expected.err);
  }
}

TEST_F(Usage, ListsComponentsAndOptions) {
  const auto list = successful(trainer({"list"}));
  for (const char* part : {"maskrcnn", "rpn.nms_thresh", "checkpoint", "evaluate",
                           "resize_shortest_edge", "clip_norm"})
    EXPECT_THAT(list.out, HasSubstr(part));
}

TEST_F(Usage, ListsEveryConfigurationKey) {
  const auto list = trainer({"list", "--json"}).json();
  // Keys by table; the tables of components contain the keys of all components.
  std::map<std::string, std::set<std::string>> known;
  const auto learn = [&](const std::string& table, const Json& options) {
    for (const auto& option : options) known[table].insert(option["name"].get<std::string>());
  };
  for (const auto& table : list["tables"]) learn(table["name"], table["options"]);
  for (const auto& [kind, table] : {std::pair{"detectors", "model"},
                                    {"callbacks", "callbacks.NAME"},
                                    {"stages", "[data.stages]"}})
    for (const auto& entry : list[kind]) learn(table, entry["options"]);
  for (const auto* key : {"type", "enabled", "only_if", "at_start"})
    EXPECT_TRUE(known["callbacks.NAME"].count(key)) << key;

  std::istringstream lines(trainer({"config", "configs/maskrcnn.toml"}).out);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) line.erase(0, 2);  // a value that follows another key
    if (line.starts_with("[[")) {
      table = line.substr(1, line.find(']'));
    } else if (line.starts_with("[")) {
      table = line.substr(1, line.find(']') - 1);
      if (table.starts_with("callbacks.")) table = "callbacks.NAME";
    } else if (const auto equals = line.find(" = "); equals != line.npos) {
      // [model.rpn] min_size is the option rpn.min_size
      const bool is_part = table.starts_with("model.");
      const auto key = (is_part ? table.substr(6) + "." : "") + line.substr(0, equals);
      EXPECT_TRUE(known[is_part ? "model" : table].count(key)) << table << ": " << line;
    }
  }
}

TEST_F(Usage, RejectsMissingGpu) {
  if (fs::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  const auto data = make_data();
  expect_error(trainer(on(data, {"run", "--out", in_folder("runs")}, {"train.device=cuda"})), 2,
               "train.device");
}

TEST_F(Usage, FailsIfOutputCannotBeWritten) {
  const auto data = make_data().string();
  const auto truth = data + "/annotations/instances_val2017.json";
  write_text(in_folder("none.json"), "[]");
  const auto none = in_folder("none.json").string();
  const auto config = "configs/maskrcnn.toml --set data.root=" + data;
  for (const std::string& command :
       {std::string("--help"), std::string("--version"), std::string("list"),
        std::string("list --json"), "config " + config,
        "coco-eval --gt " + truth + " --dt " + none + " --iou bbox",
        "coco-eval --gt " + truth + " --dt " + none + " --iou bbox --json", "doctor " + config,
        "doctor --json " + config,
        "bench dataflow --batches 2 --json " + config + " --set data.short_side=64",
        "bench dataflow --batches 2 " + config + " --set data.short_side=64",
        "convert tests/parity/goldens/loader/zip.pth " + in_folder("o.npz").string(),
        "sample --train 2 --val 2 --out " + in_folder("s").string()})
    for (const auto& [to, why] : std::vector<std::pair<std::string, std::string>>{
             {" > /dev/full", "No space left on device"}, {" >&-", "Bad file descriptor"}}) {
      const auto outcome =
          run("/bin/sh", {"-c", std::string(MILLRACE_TRAINER) + " " + command + to});
      EXPECT_EQ(outcome.exit_code, 1) << command << to;
      EXPECT_THAT(outcome.err,
                  AllOf(HasSubstr("trainer: error: "), HasSubstr("standard output: " + why)))
          << command;
      fs::remove_all(in_folder("s"));
    }
}

}  // namespace
}  // namespace millrace::testing
